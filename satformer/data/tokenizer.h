#pragma once
// SentencePiece behind a small interface, lossless where the model allows it: for a tokenizer trained here
// decode(encode(x)) == x for every valid UTF-8 text without U+0000.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace satformer::data {

class Tokenizer {
 public:
  // Error when the file is missing or is no SentencePiece model.
  explicit Tokenizer(const std::filesystem::path& model_file);
  // From the bytes of a model; `source` names them in errors.
  static Tokenizer from_serialized(std::string model, const std::string& source);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  std::int64_t vocab_size() const;
  std::int64_t unknown_id() const;  // -1 where the model has none
  std::int64_t bos_id() const;
  std::int64_t eos_id() const;
  // Pieces only: no begin or end id. Safe to call from several threads. What SentencePiece gives, with one exception:
  // U+2581, which SentencePiece takes for a space, becomes its byte pieces where the model has them.
  // Encoder (encoder.h) does the same faster for many texts, and for texts in parts.
  std::vector<std::int32_t> encode(std::string_view text) const;
  // SentencePiece on the whole text at once: the reference that encode and Encoder are tested against.
  std::vector<std::int32_t> encode_whole(std::string_view text) const;
  std::string decode(const std::vector<std::int32_t>& ids) const;
  // UTF-8 bytes of text that a piece stands for: "▁the" is 4, a byte piece 1, a control piece 0.
  std::int64_t piece_bytes(std::int64_t id) const;
  // Those bytes, U+2581 as a space; of a byte piece, perhaps part of a character.
  std::string piece_text(std::int64_t id) const;
  const std::string& serialized() const;  // the model file's bytes

 private:
  friend class Encoder;
  struct Impl;
  Tokenizer(std::string model, const std::string& source);
  std::unique_ptr<Impl> impl_;
};

struct TokenizerTraining {
  std::int64_t vocab_size = 32000;
  std::string type = "bpe";  // bpe or unigram
};

// Trains a SentencePiece model and returns its bytes: identity normalisation, white space kept, digits one by one,
// byte pieces for what the vocabulary lacks; unk 0, bos 1, eos 2, no pad. The same sentences give the same model on
// every machine. Error says what to do when the vocabulary does not fit the sentences.
std::string train_tokenizer(const TokenizerTraining& training, std::vector<std::string> sentences);

}  // namespace satformer::data
