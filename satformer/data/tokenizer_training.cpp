#include <sentencepiece_trainer.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "satformer/core/error.h"
#include "satformer/data/tokenizer.h"

namespace satformer::data {
namespace {

class VectorIterator : public sentencepiece::SentenceIterator {
 public:
  explicit VectorIterator(std::vector<std::string> sentences) : sentences_(std::move(sentences)) {}
  bool done() const override { return next_ >= sentences_.size(); }
  // SentencePiece keeps its own copy, so each of ours goes once it has been read.
  void Next() override { std::string().swap(sentences_[next_++]); }
  const std::string& value() const override { return sentences_[next_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  std::vector<std::string> sentences_;
  std::size_t next_ = 0;
};

// The number that stands after `words` in a message of SentencePiece; empty when it is not there.
std::string number_after(const std::string& message, const std::string& words) {
  const std::size_t at = message.find(words);
  if (at == std::string::npos) return {};
  const std::size_t begin = at + words.size();
  return message.substr(begin, message.find_first_not_of("0123456789", begin) - begin);
}

[[noreturn]] void fail_training(const TokenizerTraining& training, std::string message) {
  const std::string most = number_after(message, "Please set it to a value <= ");
  if (!most.empty()) {
    fail(
        "tokenizer: the text is too small for a vocabulary of {} pieces, {} at most: give --vocab-size {} or less, or "
        "more text",
        training.vocab_size, most, most);
  }
  const std::string least = number_after(message, fmt::format("required_chars. {} vs ", training.vocab_size));
  if (!least.empty()) {
    fail(
        "tokenizer: a vocabulary of {} pieces cannot hold the bytes and the text's characters: give --vocab-size {} or "
        "more",
        training.vocab_size, least);
  }
  std::replace(message.begin(), message.end(), '\n', ' ');
  fail("tokenizer: SentencePiece cannot train {} pieces on this text: {}", training.vocab_size, message);
}

}  // namespace

std::string train_tokenizer(const TokenizerTraining& training, std::vector<std::string> sentences) {
  require(training.type == "bpe" || training.type == "unigram",
          "tokenizer: type '{}' is not known; bpe and unigram are", training.type);
  require(training.vocab_size >= 1, "tokenizer: vocabulary size must be positive, got {}", training.vocab_size);
  require(!sentences.empty(), "tokenizer: no text to train on");
  const std::unordered_map<std::string, std::string> settings{
      {"model_type", training.type},
      {"vocab_size", std::to_string(training.vocab_size)},
      {"normalization_rule_name", "identity"},
      {"remove_extra_whitespaces", "false"},
      {"add_dummy_prefix", "true"},
      {"byte_fallback", "true"},
      {"split_digits", "true"},
      {"unk_id", "0"},
      {"bos_id", "1"},
      {"eos_id", "2"},
      {"pad_id", "-1"},
      {"num_threads", "4"},  // fixed: sums over threads must not depend on the machine
      {"max_sentence_length", "1048576"},
      {"minloglevel", "4"},  // above its highest: messages come as Status
  };
  VectorIterator iterator(std::move(sentences));
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(settings, &iterator, &model);
  if (!status.ok()) fail_training(training, status.ToString());
  return model;
}

}  // namespace satformer::data
