#include "satformer/data/prepare.h"

#include <algorithm>
#include <map>

#include "satformer/data/prepare_passes.h"
#include "satformer/data/split.h"
#include "satformer/io/files.h"
#include "tests/satformer/data/support.h"

#include "tests/catch.h"

namespace satformer::data {
namespace {

using testing::contains;
using testing::error_of;
using testing::made_up_lines;
using testing::read_text;
using testing::TemporaryFolder;
using testing::write_text;

// A corpus of 2,000 documents (a line each), and what prepare makes of it.
struct Fixture {
  TemporaryFolder folder;
  PrepareOptions options;

  Fixture() {
    write_text(folder / "corpus.txt", made_up_lines(2000));
    options.inputs = {folder / "corpus.txt"};
    options.output = folder / "out";
    options.corpus.values["document-per"] = "line";
    options.training.vocab_size = 400;
    options.val_fraction = 0.05;
    options.threads = 2;
  }

  std::string error() const {
    return error_of([this] { prepare(options); });
  }
  // After a failure: nothing but the input.
  bool is_untouched() const { return folder.names() == std::set<std::string>{"corpus.txt"}; }
};

std::map<std::string, std::string> contents_of(const std::filesystem::path& folder) {
  std::map<std::string, std::string> contents;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    contents[entry.path().filename().string()] = read_text(entry.path());
  }
  return contents;
}

// The documents of a split, by the end id.
std::vector<std::string> decoded(const std::filesystem::path& folder, const std::string& split) {
  const Tokenizer tokenizer(folder / "tokenizer.model");
  const DatasetInfo info = read_dataset_info(folder).value();
  const TokenDataset dataset = TokenDataset::open(folder, split, {.vocab_size = info.vocab_size, .verify = true});
  std::vector<std::int64_t> ids(static_cast<std::size_t>(dataset.num_tokens()));
  dataset.read(0, ids);
  std::vector<std::string> documents;
  std::vector<std::int32_t> document;
  for (const std::int64_t id : ids) {
    if (id == info.end_of_text_id) {
      documents.push_back(tokenizer.decode(document));
      document.clear();
    } else {
      document.push_back(static_cast<std::int32_t>(id));
    }
  }
  CHECK(document.empty());
  return documents;
}

}  // namespace

TEST_CASE("prepare writes both splits of the documents, in order", "[data][prepare]") {
  Fixture fixture;
  const PrepareResult result = prepare(fixture.options);
  CHECK(fixture.folder.names() == std::set<std::string>{"corpus.txt", "out"});
  CHECK(contents_of(fixture.options.output).size() == 4);
  CHECK(result.info.val.documents == 100);
  CHECK(result.info.train.documents == 1900);

  std::vector<std::string> train, val;
  const DocumentSplit split(2000, 0.05, 0);
  std::int64_t val_bytes = 0;
  std::uint64_t index = 0;
  for (const std::string& line : testing::documents_of(fixture.options.inputs[0], fixture.options.corpus)) {
    (split.is_val(index++) ? val : train).push_back(line);
    if (split.is_val(index - 1)) val_bytes += static_cast<std::int64_t>(line.size());
  }
  CHECK(decoded(fixture.options.output, "train") == train);
  CHECK(decoded(fixture.options.output, "val") == val);
  CHECK(result.info.val.bytes == val_bytes);

  const DatasetInfo info = read_dataset_info(fixture.options.output).value();
  CHECK(info.vocab_size == 400);
  CHECK(info.end_of_text_id == 2);
  CHECK(info.train.tokens + info.val.tokens == result.tokens());
  CHECK(info.tokenizer_crc32 == fmt::format("{:08x}", crc32_of_file(fixture.options.output / "tokenizer.model")));
}

TEST_CASE("The output depends on neither threads nor runs", "[data][prepare]") {
  Fixture fixture;
  std::map<std::string, std::string> first;
  for (const int threads : {1, 2, 5}) {
    fixture.options.threads = threads;
    fixture.options.output = fixture.folder / std::to_string(threads);
    prepare(fixture.options);
    const auto contents = contents_of(fixture.options.output);
    if (first.empty()) first = contents;
    CHECK(contents == first);
  }
  fixture.options.seed = 1;
  fixture.options.output = fixture.folder / "seed";
  prepare(fixture.options);
  CHECK(contents_of(fixture.options.output).at("val_000000.bin") != first.at("val_000000.bin"));
}

TEST_CASE("Shards keep to their size", "[data][prepare]") {
  Fixture fixture;
  prepare(fixture.options);
  const auto whole = decoded(fixture.options.output, "train");
  fixture.options.shard_tokens = 1000;
  fixture.options.tokenizer = fixture.options.output / "tokenizer.model";
  fixture.options.output = fixture.folder / "small";
  const PrepareResult result = prepare(fixture.options);
  CHECK(result.train_shards == (result.info.train.tokens + 999) / 1000);
  CHECK_FALSE(result.trained_tokenizer);
  CHECK(std::filesystem::file_size(fixture.options.output / "train_000000.bin") == 64 + 2000);
  CHECK(decoded(fixture.options.output, "train") == whole);
}

TEST_CASE("JSONL and text inputs go together, empty documents are left out", "[data][prepare]") {
  Fixture fixture;
  write_text(fixture.folder / "more.jsonl", "{\"text\": \"karo mi\\nten\"}\n{\"text\": \"\"}\n{\"text\": \" sul\"}\n");
  write_text(fixture.folder / "gaps.txt", "va\n\n\nor\n");
  fixture.options.inputs = {fixture.folder / "corpus.txt", fixture.folder / "more.jsonl", fixture.folder / "gaps.txt"};
  fixture.options.val_fraction = 1e-6;
  const PrepareResult result = prepare(fixture.options);
  CHECK(result.documents() == 2004);
  CHECK(result.empty_documents == 3);
  CHECK(result.info.val.documents == 1);
  auto documents = decoded(fixture.options.output, "train");
  const auto val = decoded(fixture.options.output, "val");
  documents.insert(documents.end(), val.begin(), val.end());
  for (const std::string document : {"karo mi\nten", " sul", "va", "or"}) {
    CHECK(std::count(documents.begin(), documents.end(), document) >= 1);
  }
  CHECK(std::count(documents.begin(), documents.end(), "") == 0);
}

TEST_CASE("A document of several segments is that of one", "[data][prepare]") {
  Fixture fixture;
  std::string lines = made_up_lines(60'000, 3);  // 2.5 MB
  std::string one_line = lines.substr(0, 1'500'000);
  std::replace(one_line.begin(), one_line.end(), '\n', ' ');
  write_text(fixture.folder / "long.txt", lines);
  write_text(fixture.folder / "line.txt", one_line);
  fixture.options.corpus.values["document-per"] = "file";
  fixture.options.inputs = {fixture.folder / "long.txt", fixture.folder / "line.txt"};
  for (const std::string type : {"bpe", "unigram"}) {
    fixture.options.training.type = type;
    fixture.options.output = fixture.folder / type;
    prepare(fixture.options);
    const Tokenizer tokenizer(fixture.options.output / "tokenizer.model");
    const bool long_is_val = DocumentSplit(2, fixture.options.val_fraction, 0).is_val(0);
    for (const bool is_long : {true, false}) {
      const std::string split = is_long == long_is_val ? "val" : "train";
      const TokenDataset dataset = TokenDataset::open(fixture.options.output, split, {});
      std::vector<std::int64_t> ids(static_cast<std::size_t>(dataset.num_tokens()));
      dataset.read(0, ids);
      std::vector<std::int32_t> expected = tokenizer.encode(is_long ? lines : one_line);
      expected.push_back(2);
      CHECK(ids == std::vector<std::int64_t>(expected.begin(), expected.end()));
    }
  }
}

TEST_CASE("prepare refuses what it cannot split or write, and leaves nothing", "[data][prepare]") {
  Fixture fixture;
  const auto with_text = [&](std::string_view text) {
    write_text(fixture.folder / "corpus.txt", text);
    return fixture.error();
  };
  SECTION("empty corpus") {
    CHECK(contains(with_text(""), "the input holds no text"));
    CHECK(contains(with_text("\n\n"), "the input holds no text: 2 documents, all empty"));
  }
  SECTION("one document") { CHECK(contains(with_text("only one line\n"), "--document-per line or blank-line")); }
  SECTION("not UTF-8, late in the input") {
    CHECK(contains(with_text(made_up_lines(2000) + "\xff\n"), "not UTF-8: byte 0xff"));
  }
  SECTION("text too small for the vocabulary") {
    CHECK(contains(with_text("karo mi\nten sul\nva or\n"), "the text is too small for a vocabulary of 400"));
  }
  SECTION("too small for one validation window") {
    fixture.options.val_fraction = 0.0005;  // one document
    fixture.options.seq_length = 256;
    CHECK(contains(fixture.error(), "val split has "));
    CHECK(contains(fixture.error(), "one window of seq_length 256 needs 257"));
  }
  SECTION("too small for one training window") {
    fixture.options.val_fraction = 0.9;
    fixture.options.seq_length = 20'000;
    CHECK(contains(fixture.error(), "train split has "));
  }
  SECTION("interrupted in the first or the second pass") {
    for (const int calls : {0, 1}) {
      int left = calls;
      fixture.options.should_stop = [&] { return left-- == 0; };
      CHECK(contains(fixture.error(), "interrupted; nothing was written"));
    }
  }
  SECTION("end-of-text id outside the vocabulary") {
    fixture.options.eot_id = 400;
    CHECK(contains(fixture.error(), "eot-id 400 is outside the tokenizer's vocabulary of 400"));
  }
  SECTION("settings") {
    fixture.options.val_fraction = 1;
    CHECK(contains(fixture.error(), "val-fraction must be in (0, 1)"));
    fixture.options.val_fraction = 0.05;
    fixture.options.shard_tokens = 0;
    CHECK(contains(fixture.error(), "shard-tokens must be at least 1"));
    fixture.options.shard_tokens = 100;
    fixture.options.inputs.push_back(fixture.folder / "absent.txt");
    CHECK(contains(fixture.error(), "absent.txt: no such file"));
    fixture.options.inputs = {fixture.folder.path()};
    CHECK(contains(fixture.error(), "is a folder"));
  }
  CHECK(fixture.is_untouched());
}

TEST_CASE("Input that changes between the passes is found", "[data][prepare]") {
  Fixture fixture;
  int calls = 0;
  fixture.options.should_stop = [&] {
    if (++calls == 1) {
      write_text(fixture.folder / "other.txt", made_up_lines(2000) + "one more\n");
      std::filesystem::rename(fixture.folder / "other.txt", fixture.folder / "corpus.txt");
    }
    return false;
  };
  CHECK(contains(fixture.error(), "the input changed while it was read"));
  CHECK(fixture.is_untouched());
}

TEST_CASE("An earlier folder is replaced only when that is asked for", "[data][prepare]") {
  Fixture fixture;
  std::filesystem::create_directory(fixture.options.output);
  prepare(fixture.options);  // an empty folder does
  const auto earlier = contents_of(fixture.options.output);
  CHECK(contains(fixture.error(), "out: exists and is not empty; give another folder or --overwrite"));

  fixture.options.overwrite = true;
  fixture.options.seed = 1;
  fixture.options.should_stop = [] { return true; };
  CHECK(contains(fixture.error(), "interrupted"));
  CHECK(contents_of(fixture.options.output) == earlier);
  fixture.options.should_stop = nullptr;
  prepare(fixture.options);
  CHECK(contents_of(fixture.options.output) != earlier);
  CHECK(fixture.folder.names() == std::set<std::string>{"corpus.txt", "out"});

  write_text(fixture.options.output / "notes.txt", "mine");
  CHECK(contains(fixture.error(), "not overwritten, because it holds notes.txt"));
  CHECK(read_text(fixture.options.output / "notes.txt") == "mine");
  fixture.options.output = fixture.folder / "corpus.txt";
  CHECK(contains(fixture.error(), "corpus.txt: exists and is no folder"));
}

TEST_CASE("An end-of-text id can be chosen", "[data][prepare]") {
  Fixture fixture;
  fixture.options.eot_id = 1;
  CHECK(prepare(fixture.options).info.end_of_text_id == 1);
  CHECK(decoded(fixture.options.output, "val").size() == 100);
}

}  // namespace satformer::data
