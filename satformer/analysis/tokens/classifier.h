#pragma once
// Classes of tokens: whole words are rebuilt from the pieces, and a token has the class of the unit (TokenCategories)
// that most of its text lies in, white space at its start apart. A piece of white space alone is of the white space's
// class, a piece without text (end of text, unknown) of the special class.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "satformer/analysis/tokens/categories.h"
#include "satformer/data/token_dataset.h"
#include "satformer/data/tokenizer.h"

namespace satformer::analysis {

class TokenClassifier {
 public:
  TokenClassifier(const data::Tokenizer& tokenizer, TokenCategories categories);

  const TokenCategories& categories() const { return categories_; }
  // The text of a piece; a byte piece's may be part of a character. Ids above the tokenizer's have none.
  const std::string& text(std::int64_t id) const;

  // For a reader: the text, "<0xE2>" for what is no text by itself, "</s>" and its like for what has none.
  std::string label(std::int64_t id) const;

  // The classes of a text's tokens; a word that the ends cut is taken as it is.
  std::vector<int> classify(std::span<const std::int64_t> ids) const;
  // Of the tokens [begin, begin + count) of a split, looking kContext tokens further on both sides for whole words.
  std::vector<int> classify(const data::TokenDataset& dataset, std::int64_t begin, std::int64_t count) const;
  static constexpr std::int64_t kContext = 64;

 private:
  // Tokens [begin, end) of `ids` stand for `text`; offsets[i] is where the text of token begin + i ends.
  struct Segment {
    std::size_t begin = 0;
    std::string text;
    std::vector<std::size_t> ends;
  };
  void classify_segment(const Segment& segment, std::vector<int>& classes) const;

  TokenCategories categories_;
  std::vector<std::string> texts_;
  std::int64_t unknown_id_, bos_id_, eos_id_;
};

}  // namespace satformer::analysis
