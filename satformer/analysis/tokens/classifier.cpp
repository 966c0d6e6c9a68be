#include "satformer/analysis/tokens/classifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "satformer/core/utf8.h"

namespace satformer::analysis {
namespace {

// The unit that covers most of [begin, end); the first of several. `unit` is the first unit that ends after begin.
int class_of_range(const std::vector<TextUnit>& units, std::size_t unit, std::size_t begin, std::size_t end) {
  std::size_t most = 0;
  int token_class = units[unit].token_class;
  for (; unit < units.size() && units[unit].begin < end; ++unit) {
    const std::size_t covered = std::min(end, units[unit].end) - std::max(begin, units[unit].begin);
    if (covered <= most) continue;
    most = covered;
    token_class = units[unit].token_class;
  }
  return token_class;
}

}  // namespace

TokenClassifier::TokenClassifier(const data::Tokenizer& tokenizer, TokenCategories categories)
    : categories_(std::move(categories)),
      unknown_id_(tokenizer.unknown_id()),
      bos_id_(tokenizer.bos_id()),
      eos_id_(tokenizer.eos_id()) {
  for (std::int64_t id = 0; id < tokenizer.vocab_size(); ++id) texts_.push_back(tokenizer.piece_text(id));
}

const std::string& TokenClassifier::text(std::int64_t id) const {
  static const std::string kNone;
  return id >= 0 && id < static_cast<std::int64_t>(texts_.size()) ? texts_[static_cast<std::size_t>(id)] : kNone;
}

std::string TokenClassifier::label(std::int64_t id) const {
  const std::string& piece = text(id);
  if (!piece.empty() && data::check_utf8(piece).status == data::Utf8Status::valid) return piece;
  if (!piece.empty()) return fmt::format("<0x{:02X}>", static_cast<unsigned char>(piece.front()));
  if (id == unknown_id_) return "<unk>";
  if (id == bos_id_) return "<s>";
  return id == eos_id_ ? "</s>" : fmt::format("<{}>", id);
}

std::vector<int> TokenClassifier::classify(std::span<const std::int64_t> ids) const {
  std::vector<int> classes(ids.size(), categories_.special_class());
  Segment segment;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::string& piece = text(ids[i]);
    if (piece.empty()) {
      classify_segment(segment, classes);
      segment = {.begin = i + 1, .text = {}, .ends = {}};
      continue;
    }
    segment.text += piece;
    segment.ends.push_back(segment.text.size());
  }
  classify_segment(segment, classes);
  return classes;
}

void TokenClassifier::classify_segment(const Segment& segment, std::vector<int>& classes) const {
  const std::vector<TextUnit> units = categories_.units(segment.text);
  std::size_t unit = 0, begin = 0;
  for (std::size_t i = 0; i < segment.ends.size(); ++i) {
    const std::size_t end = segment.ends[i];
    const std::size_t word = std::min(segment.text.find_first_not_of(' ', begin), segment.text.size());
    if (word < end) begin = word;
    while (units[unit].end <= begin) ++unit;
    classes[segment.begin + i] = class_of_range(units, unit, begin, end);
    begin = end;
  }
}

std::vector<int> TokenClassifier::classify(const data::TokenDataset& dataset, std::int64_t begin,
                                           std::int64_t count) const {
  const std::int64_t from = std::max<std::int64_t>(0, begin - kContext);
  const std::int64_t to = std::min(dataset.num_tokens(), begin + count + kContext);
  std::vector<std::int64_t> ids(static_cast<std::size_t>(to - from));
  dataset.read(from, ids);
  const std::vector<int> classes = classify(ids);
  const auto first = classes.begin() + (begin - from);
  return {first, first + count};
}

}  // namespace satformer::analysis
