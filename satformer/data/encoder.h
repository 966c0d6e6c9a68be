#pragma once
// Fast encoding of many texts by one thread.
//
// SentencePiece works on a whole text at a time, and its BPE slows down with the text's length. In most models no
// piece reaches across the start of a word (a run of spaces and what follows up to the next space or newline) or
// across a newline, so that the ids of a text are those of its words in a row. Encoder finds out whether that holds
// for the model; then it encodes word by word and remembers words. Otherwise it hands SentencePiece the whole text.
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "satformer/data/tokenizer.h"

namespace satformer::data {

class Encoder {
 public:
  explicit Encoder(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  // Appends the ids of a text. A `continuation` stands in the middle of a document: no space is invented before it.
  // (Done by encoding "\n" + text and dropping the newline's ids; where a model does not allow that, as a fresh text.)
  void encode(std::string_view text, bool continuation, std::vector<std::int32_t>& ids);

 private:
  struct Range {
    std::uint32_t begin = 0, count = 0;  // in remembered_ids_
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  void encode_words(std::string_view text, bool continuation, std::vector<std::int32_t>& ids);
  void encode_word(std::string_view word, bool continuation, std::vector<std::int32_t>& ids);
  void remember(std::string_view word, const std::int32_t* ids, std::size_t count);

  const Tokenizer& tokenizer_;
  // Words in the middle of a text and their ids; emptied when full (about 10 MiB).
  std::unordered_map<std::string, Range, Hash, std::equal_to<>> words_;
  std::vector<std::int32_t> remembered_ids_;
};

}  // namespace satformer::data
