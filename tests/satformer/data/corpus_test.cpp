#include <algorithm>

#include "satformer/core/utf8.h"
#include "satformer/data/byte_source.h"
#include "satformer/data/text_source.h"
#include "tests/paths.h"
#include "tests/satformer/data/support.h"

#include "tests/catch.h"

namespace satformer::data {
namespace {

using testing::contains;
using testing::documents_of;
using testing::error_of;
using testing::read_text;
using testing::TemporaryFolder;
using testing::write_text;
using Strings = std::vector<std::string>;

std::filesystem::path corpus_file(const std::string& name) { return testing::test_data_dir() / "corpus" / name; }

std::string decompress(const std::filesystem::path& path, std::size_t step) {
  const auto source = open_byte_source(path);
  std::string all;
  std::vector<char> buffer(step);
  while (const std::size_t count = source->read(buffer)) all.append(buffer.data(), count);
  return all;
}

Strings documents_in(const TemporaryFolder& folder, std::string_view text, const CorpusOptions& options,
                     const std::string& name = "a.txt") {
  write_text(folder / name, text);
  return documents_of(folder / name, options);
}

CorpusOptions per(const std::string& unit) { return {.format = "", .values = {{"document-per", unit}}}; }

}  // namespace

TEST_CASE("UTF-8 is checked strictly", "[data][utf8]") {
  const auto check = [](std::string_view text) { return check_utf8(text); };
  const std::string good =
      "plain ascii text, \xc2\x80\xdf\xbf \xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf "
      "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf end";
  CHECK(check(good).status == Utf8Status::valid);
  CHECK(check(good).valid_bytes == good.size());
  for (const char* bad : {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
                          "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xc2\x41", "\xe2\x82\x41", "\xe2\x41"}) {
    const std::string text = std::string("0123456789") + bad;
    INFO(bad);
    CHECK(check(text).status == Utf8Status::invalid);
    CHECK(check(text).valid_bytes == 10);
  }
  for (const char* part : {"\xc2", "\xe2\x82", "\xf0\x9f\x8e"}) {
    CHECK(check(std::string("ab") + part).status == Utf8Status::incomplete);
    CHECK(check(std::string("ab") + part).valid_bytes == 2);
  }
  CHECK(utf8_boundary("a\xc3\xa9z", 2) == 1);
  CHECK(utf8_boundary("a\xc3\xa9z", 3) == 3);
  CHECK(utf8_boundary("a\xc3\xa9z", 9) == 4);
}

TEST_CASE("Several gzip members and zstd frames are one stream", "[data][corpus]") {
  for (const std::size_t step : {std::size_t{1}, std::size_t{7}, std::size_t{4096}}) {
    CHECK(decompress(corpus_file("two_members.txt.gz"), step) == "first member\nend of it\nsecond member\n");
    CHECK(decompress(corpus_file("two_frames.txt.zst"), step) == "first frame\nend of it\nsecond frame\n");
  }
}

TEST_CASE("A cut compressed file is an error at every length", "[data][corpus]") {
  const TemporaryFolder folder;
  for (const std::string name : {"two_members.txt.gz", "two_frames.txt.zst"}) {
    const std::string whole = read_text(corpus_file(name));
    int whole_streams = 0;
    for (std::size_t length = 0; length < whole.size(); ++length) {
      write_text(folder / name, std::string_view(whole).substr(0, length));
      const std::string error = error_of([&] { decompress(folder / name, 64); });
      if (error.empty()) {
        ++whole_streams;  // cut exactly between the two
        continue;
      }
      INFO(length << ": " << error);
      CHECK(contains(error, name));
      CHECK(contains(error, "truncated"));
    }
    CHECK(whole_streams == 1);
  }
}

TEST_CASE("A corrupt compressed file is an error", "[data][corpus]") {
  const TemporaryFolder folder;
  for (const std::string name : {"two_members.txt.gz", "two_frames.txt.zst"}) {
    const std::string whole = read_text(corpus_file(name));
    std::string damaged = whole;
    damaged[20] = static_cast<char>(damaged[20] ^ 0x41);
    write_text(folder / name, damaged);
    CHECK(contains(error_of([&] { decompress(folder / name, 64); }), name));
    write_text(folder / name, whole + "no compressed data");
    const std::string error = error_of([&] { decompress(folder / name, 64); });
    CHECK(contains(error, name));
    CHECK(contains(error, "corrupt"));
  }
}

TEST_CASE("What is no file is named", "[data][corpus]") {
  const TemporaryFolder folder;
  CHECK(contains(error_of([&] { documents_of(folder / "absent.txt"); }), "absent.txt: no such file"));
  CHECK(contains(error_of([&] { documents_of(folder.path()); }), folder.path().string() + ": is a folder"));
  CHECK(contains(error_of([&] { documents_of("/dev/null"); }), "/dev/null: is no regular file"));
  write_text(folder / "a.txt", "a");
  CHECK(contains(error_of([&] { documents_of(folder / "a.txt", {.format = "parquet", .values = {}}); }),
                 "corpus format 'parquet' is not known, expected one of jsonl, text"));
}

TEST_CASE("Text that is not UTF-8 is rejected with its position", "[data][corpus]") {
  const TemporaryFolder folder;
  const auto error_for = [&](const std::string& text) {
    write_text(folder / "a.txt", text);
    return error_of([&] { documents_of(folder / "a.txt"); });
  };
  CHECK(contains(error_for("abc\xff"), "a.txt: not UTF-8: byte 0xff at byte 3"));
  CHECK(contains(error_for("abc\xe2\x82"), "byte 0xe2 at byte 3"));
  CHECK(contains(error_for(std::string("ab\0cd\xff", 6)), "U+0000 at byte 2"));
  // Characters across the boundaries of the reader's buffer, and positions beyond it.
  std::string text;
  while (text.size() < 700'000) text += "\xf0\x9f\x8e\x89z";
  CHECK(documents_in(folder, text, {}) == Strings{text});
  CHECK(contains(error_for(text + "\xed\xa0\x80"), fmt::format("byte 0xed at byte {}", text.size())));
}

TEST_CASE("A byte-order mark is not part of the text", "[data][corpus]") {
  const TemporaryFolder folder;
  CHECK(documents_in(folder,
                     "\xef\xbb\xbf"
                     "a\xef\xbb\xbf",
                     {}) == Strings{"a\xef\xbb\xbf"});
  CHECK(documents_in(folder, "\xef\xbb\xbf", {}) == Strings{""});
}

TEST_CASE("Plain text is cut into documents", "[data][corpus]") {
  const TemporaryFolder folder;
  const std::string text = "one\r\ntwo\n\n\nthree\rx\n  \nfour";
  CHECK(documents_in(folder, text, {}) == Strings{text});
  CHECK(documents_in(folder, text, per("line")) == Strings{"one", "two", "", "", "three\rx", "  ", "four"});
  CHECK(documents_in(folder, text, per("blank-line")) == Strings{"one\r\ntwo", "three\rx\n  \nfour"});
  CHECK(documents_in(folder, "\n\r\n\na\n\r\n\r\nb\n\n", per("blank-line")) == Strings{"a", "b"});
  CHECK(documents_in(folder, "a\nb\r", per("line")) == Strings{"a", "b\r"});
  CHECK(documents_in(folder, "", per("line")).empty());
  CHECK(documents_in(folder, "\n\n", per("blank-line")).empty());
  CHECK(documents_in(folder, "", {}) == Strings{""});
  CHECK(error_of([&] { documents_in(folder, text, per("page")); }) ==
        "document-per: expected one of file, line, blank-line, got 'page'");
}

TEST_CASE("Line ends that fall on a buffer's edge are found", "[data][corpus]") {
  const TemporaryFolder folder;
  constexpr std::size_t kBuffer = 1 << 18;
  for (const std::size_t before : {kBuffer - 2, kBuffer - 1, kBuffer}) {
    const std::string first(before, 'a');
    CHECK(documents_in(folder, first + "\r\nb\n", per("line")) == Strings{first, "b"});
    CHECK(documents_in(folder, first + "\r\n\r\nb\n", per("blank-line")) == Strings{first, "b"});
    CHECK(documents_in(folder, first + "\rb", per("line")) == Strings{first + "\rb"});
  }
}

TEST_CASE("JSON lines give a field's text", "[data][corpus]") {
  const TemporaryFolder folder;
  const std::string lines =
      "{\"id\": 1, \"text\": \"a\\nb \\u00e9\", \"meta\": {\"text\": \"inner\", \"list\": [1, {\"text\": 2}]}}\r\n"
      "\n  \n{\"text\": \"\"}\n{\"text\": \"first\", \"text\": \"last\"}\n{\"body\": 1, \"text\": "
      "\"\xf0\x9f\x8e\x89\"}";
  const Strings expected{"a\nb \xc3\xa9", "", "last", "\xf0\x9f\x8e\x89"};
  for (const std::string name : {"a.jsonl", "a.ndjson", "a.json-lines"}) {
    CHECK(documents_in(folder, lines, {}, name) == expected);
  }
  CHECK(documents_in(folder, lines, {.format = "jsonl", .values = {}}, "a.txt") == expected);
  CHECK(documents_in(folder, "{\"text\":1,\"body\":\"b\"}", {.format = "", .values = {{"field", "body"}}}, "b.jsonl") ==
        Strings{"b"});
  CHECK(documents_of(corpus_file("documents.jsonl.gz")) == Strings{"zipped \xc3\xa9t\xc3\xa9", "b"});
}

TEST_CASE("A wrong JSON line is named", "[data][corpus]") {
  const TemporaryFolder folder;
  const auto error_for = [&](std::string_view line) {
    write_text(folder / "a.jsonl", "{\"text\": \"fine\"}\n\n" + std::string(line) + "\n{\"text\": \"fine\"}\n");
    return error_of([&] { documents_of(folder / "a.jsonl"); });
  };
  for (const char* line :
       {"{\"text\": \"a\"", "nothing", "{\"text\": \"a\"} {}", "{'text': 1}", "{\"text\": \"\\ud800\"}"}) {
    const std::string error = error_for(line);
    INFO(error);
    CHECK(contains(error, "a.jsonl, line 3: not JSON: "));
    CHECK_FALSE(contains(error, "json.exception"));
    CHECK_FALSE(contains(error, "\n"));
  }
  CHECK(contains(error_for("[\"text\"]"), "line 3: a JSON object was expected"));
  CHECK(contains(error_for("\"text\""), "line 3: a JSON object was expected"));
  CHECK(contains(error_for("{\"other\": {\"text\": \"a\"}}"), "line 3: no field 'text'"));
  CHECK(contains(error_for("{\"text\": 5}"), "line 3: field 'text' is a number, expected a string"));
  CHECK(contains(error_for("{\"text\": null}"), "field 'text' is null"));
  CHECK(contains(error_for("{\"text\": [\"a\"]}"), "field 'text' is an array"));
  CHECK(contains(error_for("{\"text\": {\"text\": \"a\"}}"), "field 'text' is an object"));
  CHECK(contains(error_for("{\"text\": \"a\\u0000b\"}"), "line 3: U+0000 at byte 1 of field 'text'"));
  CHECK(contains(error_for("{\"text\": \"a\xff\"}"), "not UTF-8: byte 0xff at byte 29"));
}

}  // namespace satformer::data
