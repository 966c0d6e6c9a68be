#include "satformer/analysis/tokens/classifier.h"

#include <fstream>

#include "satformer/data/shard_writer.h"
#include "satformer/data/text_tokens.h"
#include "tests/catch.h"
#include "tests/satformer/data/support.h"

namespace {

using namespace satformer;
using namespace satformer::analysis;

const std::string kText = "And the unfathomable kingdoms, 12 of them, shall not stand.\nBehold caf\xc3\xa9!\n";

// Few pieces, so that words are in several of them.
const data::Tokenizer& small_tokenizer() {
  static const data::Tokenizer tokenizer = data::Tokenizer::from_serialized(
      data::train_tokenizer({.vocab_size = 300, .type = "bpe"}, {testing::made_up_lines(200), kText}), "test");
  return tokenizer;
}

std::vector<std::int64_t> ids_of(const std::string& text) {
  const std::vector<std::int32_t> ids = small_tokenizer().encode(text);
  return {ids.begin(), ids.end()};
}

// The text again, each token marked with its class.
std::vector<std::pair<std::string, std::string>> marked(const std::string& text) {
  const TokenClassifier classifier(small_tokenizer(), TokenCategories::built_in());
  const std::vector<std::int64_t> ids = ids_of(text);
  const std::vector<int> classes = classifier.classify(ids);
  std::vector<std::pair<std::string, std::string>> result;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    result.emplace_back(classifier.text(ids[i]),
                        classifier.categories().classes()[static_cast<std::size_t>(classes[i])].name);
  }
  return result;
}

std::size_t count_of(const std::vector<std::pair<std::string, std::string>>& tokens, const std::string& name) {
  return static_cast<std::size_t>(
      std::count_if(tokens.begin(), tokens.end(), [&](const auto& token) { return token.second == name; }));
}

}  // namespace

TEST_CASE("a piece's text has the bytes that it stands for", "[analysis]") {
  const data::Tokenizer& tokenizer = small_tokenizer();
  std::string text;
  for (std::int64_t id = 0; id < tokenizer.vocab_size(); ++id) {
    CHECK(static_cast<std::int64_t>(tokenizer.piece_text(id).size()) == tokenizer.piece_bytes(id));
  }
  for (const std::int64_t id : ids_of(kText)) text += tokenizer.piece_text(id);
  CHECK((text == kText || text == " " + kText));  // with the space that SentencePiece puts first
  CHECK_THROWS_AS(tokenizer.piece_text(tokenizer.vocab_size()), Error);
}

TEST_CASE("every piece of a word has the word's class", "[analysis]") {
  const auto tokens = marked(kText);
  std::string content, functional;
  for (const auto& [piece, name] : tokens) {
    if (name == "content") content += piece;
    if (name == "conjunction" || name == "determiner" || name == "adposition" || name == "pronoun" ||
        name == "auxiliary" || name == "adverb") {
      functional += piece;
    }
  }
  const auto words = [](std::string text) {
    std::erase(text, ' ');
    return text;
  };
  CHECK(words(content) == "unfathomablekingdomsstandBeholdcaf\xc3\xa9");
  CHECK(words(functional) == "Andtheofthemshallnot");
  CHECK(tokens.size() > 20);  // or no word was cut
  CHECK(count_of(tokens, "punctuation") == 4);
  CHECK(count_of(tokens, "line_end") == 2);
  CHECK(count_of(tokens, "digits") == 2);
}

TEST_CASE("pieces without text are special and end words", "[analysis]") {
  const TokenClassifier classifier(small_tokenizer(), TokenCategories::built_in());
  const std::int64_t end = small_tokenizer().eos_id();
  std::vector<std::int64_t> ids = ids_of("the");
  const std::size_t first = ids.size();
  ids.push_back(end);
  for (const std::int64_t id : ids_of("me")) ids.push_back(id);
  ids.push_back(100'000);  // of a model with more ids than pieces
  const std::vector<int> classes = classifier.classify(ids);
  const auto name = [&](std::size_t i) {
    return classifier.categories().classes()[static_cast<std::size_t>(classes[i])].name;
  };
  CHECK(name(first - 1) == "determiner");
  CHECK(name(first) == "special");
  CHECK(name(ids.size() - 2) == "pronoun");
  CHECK(name(ids.size() - 1) == "special");
  CHECK(classifier.classify(std::span<const std::int64_t>()).empty());
  CHECK(classifier.label(end) == "</s>");
  CHECK(classifier.label(small_tokenizer().unknown_id()) == "<unk>");
  CHECK(classifier.label(100'000) == "<100000>");
}

TEST_CASE("classes do not depend on where the stream is cut", "[analysis]") {
  const testing::TemporaryFolder folder;
  testing::write_text(folder / "text.txt", kText + testing::made_up_lines(20, 3) + kText);
  data::write_text_tokens(folder / "text.txt", small_tokenizer(), 2, folder.path(), "text");
  const auto dataset = data::TokenDataset::open(folder.path(), "text", {});
  const TokenClassifier classifier(small_tokenizer(), TokenCategories::built_in());
  const std::vector<int> whole = classifier.classify(dataset, 0, dataset.num_tokens());
  REQUIRE(static_cast<std::int64_t>(whole.size()) == dataset.num_tokens());
  for (const std::int64_t length : {1, 7, 64, 501}) {
    std::vector<int> pieced;
    for (std::int64_t begin = 0; begin < dataset.num_tokens(); begin += length) {
      const std::int64_t count = std::min(length, dataset.num_tokens() - begin);
      const std::vector<int> part = classifier.classify(dataset, begin, count);
      pieced.insert(pieced.end(), part.begin(), part.end());
    }
    CHECK(pieced == whole);
  }
}

TEST_CASE("a text's tokens are those of the tokenizer and the end of text", "[analysis]") {
  const testing::TemporaryFolder folder;
  testing::write_text(folder / "text.txt", kText);
  data::write_text_tokens(folder / "text.txt", small_tokenizer(), 2, folder.path(), "text");
  const auto dataset = data::TokenDataset::open(folder.path(), "text", {});
  std::vector<std::int64_t> ids(static_cast<std::size_t>(dataset.num_tokens())), expected = ids_of(kText);
  dataset.read(0, ids);
  expected.push_back(2);
  CHECK(ids == expected);
}
