#include "satformer/data/sentence_sample.h"

#include <algorithm>
#include <utility>

#include "satformer/core/utf8.h"
#include "satformer/data/mixing.h"

namespace satformer::data {
namespace {

constexpr std::size_t kMaxSentence = 4096;
// SentencePiece leaves out lines with this character or a tab, its own marks; they end a sentence here. So does \r,
// which would otherwise end up in pieces for the last words of lines.
constexpr std::string_view kReserved = "\xe2\x96\x85";
constexpr std::string_view kLineEnds = "\n\r\t";

}  // namespace

void SentenceSample::text(std::string_view part, std::uint64_t document) {
  while (!part.empty()) {
    const std::size_t end = part.find_first_of(kLineEnds);
    std::string_view line = part.substr(0, end);
    while (open_.size() + line.size() > kMaxSentence) {
      const std::size_t room = utf8_boundary(line, kMaxSentence - std::min(kMaxSentence, open_.size()));
      open_ += line.substr(0, room);
      line.remove_prefix(room);
      end_sentence(document);
    }
    open_ += line;
    if (end == std::string_view::npos) return;
    end_sentence(document);
    part.remove_prefix(end + 1);
  }
}

void SentenceSample::end_document(std::uint64_t document) { end_sentence(document); }

void SentenceSample::end_sentence(std::uint64_t document) {
  std::string_view rest = open_;
  while (!rest.empty()) {
    const std::size_t end = rest.find(kReserved);
    add(rest.substr(0, end), document);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + kReserved.size());
  }
  open_.clear();
}

void SentenceSample::add(std::string_view sentence, std::uint64_t document) {
  if (sentence.empty()) return;
  const std::uint64_t index = next_index_++;
  const std::uint64_t rank = mix_bits(mix_bits(seed_) + index);
  if (rank >= first_rank_out_) return;
  Sentence entry{rank, index, document, std::string(sentence)};
  used_ += cost(entry);
  kept_.push(std::move(entry));
  while (used_ > budget_) {
    first_rank_out_ = kept_.top().rank;
    used_ -= cost(kept_.top());
    kept_.pop();
  }
}

std::vector<std::string> SentenceSample::take(const std::function<bool(std::uint64_t)>& wanted) {
  std::vector<Sentence> sentences;
  for (; !kept_.empty(); kept_.pop()) {
    // The queue gives const access alone; its top is about to go.
    auto& top = const_cast<Sentence&>(kept_.top());
    if (wanted(top.document)) sentences.push_back({top.rank, top.index, top.document, std::move(top.text)});
  }
  used_ = 0;
  std::sort(sentences.begin(), sentences.end(), [](const Sentence& a, const Sentence& b) { return a.index < b.index; });
  std::vector<std::string> texts;
  texts.reserve(sentences.size());
  for (Sentence& sentence : sentences) texts.push_back(std::move(sentence.text));
  return texts;
}

}  // namespace satformer::data
