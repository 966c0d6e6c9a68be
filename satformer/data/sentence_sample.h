#pragma once
// A random sample of a corpus's sentences within a fixed memory, to train a tokenizer on.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <string>
#include <string_view>
#include <vector>

namespace satformer::data {

// Sentences are lines, longer ones cut at 4 KiB. Each gets a random rank from the seed and its index; the sample is
// those of lowest rank that fit the budget, so it depends on the corpus and the seed alone. A corpus that fits is
// taken whole.
class SentenceSample {
 public:
  // `budget_bytes` counts the text and what it costs to keep it.
  SentenceSample(std::uint64_t budget_bytes, std::uint64_t seed) : budget_(budget_bytes), seed_(seed) {}

  void text(std::string_view part, std::uint64_t document);
  void end_document(std::uint64_t document);

  // The sample in the corpus's order, without the sentences of documents that are not wanted. Leaves nothing behind.
  std::vector<std::string> take(const std::function<bool(std::uint64_t document)>& wanted);

 private:
  struct Sentence {
    std::uint64_t rank = 0, index = 0, document = 0;
    std::string text;
    bool operator<(const Sentence& other) const { return rank < other.rank; }
  };

  void end_sentence(std::uint64_t document);
  void add(std::string_view sentence, std::uint64_t document);
  static std::uint64_t cost(const Sentence& sentence) { return sizeof(Sentence) + sentence.text.capacity(); }

  std::uint64_t budget_, seed_;
  std::uint64_t used_ = 0, next_index_ = 0;
  std::uint64_t first_rank_out_ = ~std::uint64_t{0};  // the lowest rank that did not fit
  std::string open_;                                  // the sentence being read
  std::priority_queue<Sentence> kept_;                // highest rank on top
};

}  // namespace satformer::data
