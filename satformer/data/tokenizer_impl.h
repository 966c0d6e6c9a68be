#pragma once
// What Tokenizer and Encoder share; not for others, so that SentencePiece's header stays in this folder.
#include <sentencepiece_processor.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "satformer/data/tokenizer.h"

namespace satformer::data {

inline constexpr std::string_view kSpaceSymbol = "\xe2\x96\x81";  // U+2581, SentencePiece's space

struct Tokenizer::Impl {
  std::string model;
  sentencepiece::SentencePieceProcessor processor;
  // Ids of "\n": the piece of the space that is put before every text (where the model does so), then the newline's.
  std::vector<std::int32_t> newline_ids;
  std::size_t dummy_prefix = 0;  // how many of them stand for the space
  bool continues = false;        // a text after "\n" encodes as it would at that place of a longer text
  bool splits_words = false;     // no piece reaches across words or newlines
  std::array<std::int32_t, 3> space_symbol_bytes{};  // byte pieces of a literal U+2581
  bool has_byte_pieces = false;

  void load(const std::string& source);
  std::vector<std::int32_t> encode_plain(std::string_view text) const;  // SentencePiece itself
  std::string decode(const std::vector<std::int32_t>& ids) const;

 private:
  void inspect_pieces();
  void probe();
};

}  // namespace satformer::data
