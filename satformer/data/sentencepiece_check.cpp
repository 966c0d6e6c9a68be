#include "satformer/data/sentencepiece_check.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <protozero/pbf_message.hpp>
#include <utility>
#include <vector>

#include "satformer/core/error.h"
#include "satformer/core/utf8.h"
#include "satformer/io/strict_json.h"

namespace satformer::data {
namespace {

// Field numbers of sentencepiece_model.proto.
enum class Model : protozero::pbf_tag_type { pieces = 1, normalizer = 3, denormalizer = 5 };
enum class Piece : protozero::pbf_tag_type { text = 1, score = 2, type = 3 };
enum class Normalizer : protozero::pbf_tag_type { charsmap = 2 };

constexpr int kBytePiece = 6;
constexpr std::size_t kMaxPieceBytes = 8000;
constexpr std::size_t kMaxCharsmapBytes = std::size_t{1} << 24;  // published ones have 240 kB
constexpr int kMaxPrefixes = 32;                                 // SentencePiece's buffer of matches

std::string_view view(const protozero::data_view& data) { return {data.data(), data.size()}; }

bool is_byte_piece(std::string_view text) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F'); };
  return text.size() == 6 && text.starts_with("<0x") && text.ends_with('>') && is_digit(text[3]) && is_digit(text[4]);
}

void check_piece(protozero::pbf_message<Piece> piece, std::int64_t id, const std::string& source) {
  std::string_view text;
  double score = 0;
  int type = 0;
  while (piece.next()) {
    if (piece.tag_and_type() == protozero::tag_and_type(Piece::text, protozero::pbf_wire_type::length_delimited)) {
      text = view(piece.get_view());
    } else if (piece.tag_and_type() == protozero::tag_and_type(Piece::score, protozero::pbf_wire_type::fixed32)) {
      score = piece.get_float();
    } else if (piece.tag_and_type() == protozero::tag_and_type(Piece::type, protozero::pbf_wire_type::varint)) {
      type = piece.get_enum();
    } else {
      piece.skip();
    }
  }
  const auto where = [&] { return fmt::format("{}: piece {} {}", source, id, in_quotes(text)); };
  if (text.empty() || text.size() > kMaxPieceBytes) {
    fail("{}: expected 1 to {} bytes, got {}", where(), kMaxPieceBytes, text.size());
  }
  if (text.find('\0') != text.npos) fail("{}: holds U+0000", where());
  if (check_utf8(text).status != Utf8Status::valid) fail("{}: is no UTF-8", where());
  if (!std::isfinite(score)) fail("{}: its score {} is no finite number", where(), score);
  if (type == kBytePiece && !is_byte_piece(text)) fail("{}: a byte piece is written <0x00> to <0xFF>", where());
}

// The double array of a table of replacements, a graph whose paths from the root (unit 0) are the texts that are
// replaced, walked for every text at once. Layout of a unit: bits 0-7 and 31 the label, bit 8 "a text ends here", bits
// 10-30 the offset (times 256 where bit 9 is set); of the unit at an end: bits 0-30 the place of the replacement.
class CharsmapCheck {
 public:
  CharsmapCheck(std::string_view units, std::size_t replacement_bytes, std::string where)
      : units_(units.size() / sizeof(std::uint32_t)),
        ends_below_(units_.size(), kUnknown),
        replacement_bytes_(replacement_bytes),
        where_(std::move(where)) {
    std::memcpy(units_.data(), units.data(), units.size());
  }

  // Depth first; each unit once.
  void run() {
    enter(0);
    while (!path_.empty()) {
      Step& step = path_.back();
      if (step.next_byte == 256) {
        leave();
        continue;
      }
      const std::uint32_t byte = step.next_byte++;
      const std::size_t child = step.base ^ byte;
      if ((units_[child] & kLabelMask) != byte) continue;
      require(ends_below_[child] != kOnPath, "{}: unit {} leads back to itself", where_, child);
      if (ends_below_[child] == kUnknown) {
        enter(child);
      } else {
        step.ends_below = std::max(step.ends_below, ends_below_[child]);
      }
    }
  }

 private:
  struct Step {
    std::size_t index = 0, base = 0;  // a unit, and the place that a byte is added to (by xor) to find the next
    std::uint32_t next_byte = 0;
    int ends_below = 0;  // the most ends of texts on a path from here on, this unit's not included
  };

  void enter(std::size_t index) {
    const std::uint32_t unit = units_[index];
    const std::size_t base = index ^ ((unit >> 10U) << ((unit & (1U << 9U)) >> 6U));
    // A search looks at any of the 256 places.
    require((base | 0xffU) < units_.size(), "{}: unit {} leads out of its {} units", where_, index, units_.size());
    if (is_end(index)) {
      const std::uint32_t place = units_[base] & 0x7fffffffU;
      require(place < replacement_bytes_, "{}: unit {} leads to byte {} of {} bytes of replacements", where_, index,
              place, replacement_bytes_);
    }
    ends_below_[index] = kOnPath;
    path_.push_back({index, base});
  }

  void leave() {
    const Step step = path_.back();
    path_.pop_back();
    const int ends = step.ends_below + (is_end(step.index) ? 1 : 0);
    require(ends <= kMaxPrefixes, "{}: more than {} replacements for one text", where_, kMaxPrefixes);
    ends_below_[step.index] = ends;
    if (!path_.empty()) path_.back().ends_below = std::max(path_.back().ends_below, ends);
  }

  bool is_end(std::size_t index) const { return index != 0 && (units_[index] & (1U << 8U)) != 0; }

  static constexpr std::uint32_t kLabelMask = 0x800000ffU;
  static constexpr int kUnknown = -1, kOnPath = -2;
  std::vector<std::uint32_t> units_;
  std::vector<int> ends_below_;  // with the unit's own
  std::size_t replacement_bytes_;
  std::string where_;
  std::vector<Step> path_;
};

// u32 size of the double array in bytes, the double array, replacements that end in U+0000 each.
void check_charsmap(std::string_view charsmap, const std::string& source) {
  if (charsmap.empty()) return;
  const std::string where = fmt::format("{}: precompiled_charsmap", source);
  require(charsmap.size() <= kMaxCharsmapBytes, "{}: {} bytes, at most {} are read", where, charsmap.size(),
          kMaxCharsmapBytes);
  std::uint32_t size = 0;
  require(charsmap.size() > sizeof(size), "{}: {} bytes are too few", where, charsmap.size());
  std::memcpy(&size, charsmap.data(), sizeof(size));
  charsmap.remove_prefix(sizeof(size));
  require(size > 0 && size % sizeof(std::uint32_t) == 0 && size < charsmap.size(),
          "{}: a table of {} bytes in {}, expected a multiple of 4 and replacements after it", where, size,
          charsmap.size());
  require(charsmap.back() == '\0', "{}: its last replacement has no end", where);
  CharsmapCheck(charsmap.substr(0, size), charsmap.size() - size, where).run();
}

void check_normalizer(protozero::pbf_message<Normalizer> normalizer, const std::string& source) {
  while (normalizer.next(Normalizer::charsmap, protozero::pbf_wire_type::length_delimited)) {
    check_charsmap(view(normalizer.get_view()), source);
  }
}

void check_model(std::string_view model, const std::string& source) {
  protozero::pbf_message<Model> message(model.data(), model.size());
  std::int64_t id = 0;
  while (message.next()) {
    if (message.wire_type() != protozero::pbf_wire_type::length_delimited) {
      message.skip();
    } else if (message.tag() == Model::pieces) {
      check_piece(message.get_message(), id++, source);
    } else if (message.tag() == Model::normalizer || message.tag() == Model::denormalizer) {
      check_normalizer(message.get_message(), source);
    } else {
      message.skip();
    }
  }
}

}  // namespace

void check_sentencepiece_model(std::string_view model, const std::string& source) {
  try {
    check_model(model, source);
  } catch (const protozero::exception& error) {
    fail("{}: no SentencePiece model: {}", source, error.what());
  }
}

}  // namespace satformer::data
