#include "satformer/data/sentencepiece_check.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <protozero/pbf_message.hpp>
#include <vector>

#include "satformer/core/error.h"
#include "satformer/core/strict_json.h"
#include "satformer/data/utf8.h"

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
    fail("{}: expected 1 to {} bytes, came {}", where(), kMaxPieceBytes, text.size());
  }
  if (text.find('\0') != text.npos) fail("{}: holds U+0000", where());
  if (check_utf8(text).status != Utf8Status::valid) fail("{}: is no UTF-8", where());
  if (!std::isfinite(score)) fail("{}: its score {} is no finite number", where(), score);
  if (type == kBytePiece && !is_byte_piece(text)) fail("{}: a byte piece is written <0x00> to <0xFF>", where());
}

// The double array of a table of replacements, walked from its root as a search would, for every text at once. Layout
// of a unit: bits 0-7 and 31 the label, bit 8 "a match ends here", bits 10-30 the offset (times 256 where bit 9 is
// set); of a match's unit: bits 0-30 the place of its replacement.
class CharsmapCheck {
 public:
  CharsmapCheck(std::string_view units, std::string_view replacements, std::string where)
      : units_(units.size() / sizeof(std::uint32_t)),
        visited_(units_.size()),
        num_replacement_bytes_(replacements.size()),
        where_(std::move(where)) {
    std::memcpy(units_.data(), units.data(), units.size());
  }

  void run() {
    open_.push_back({0, 0});
    while (!open_.empty()) {
      const Node node = open_.back();
      open_.pop_back();
      visit(node);
    }
  }

 private:
  struct Node {
    std::size_t index = 0;
    int prefixes = 0;  // matches on the way from the root, this node's included
  };

  void visit(const Node& node) {
    const std::uint32_t unit = units_[node.index];
    const std::size_t base = node.index ^ (unit >> 10U << ((unit & (1U << 9U)) >> 6U));
    // A search looks at any of the 256 places.
    require((base | 0xffU) < units_.size(), "{}: unit {} leads out of its {} units", where_, node.index, units_.size());
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      const std::size_t child = base ^ byte;
      if ((units_[child] & kLabelMask) == byte) enter(child, node.prefixes);
    }
  }

  void enter(std::size_t index, int prefixes) {
    require(!visited_[index], "{}: unit {} is reached in two ways", where_, index);
    visited_[index] = true;
    const std::uint32_t unit = units_[index];
    if ((unit & (1U << 8U)) != 0) {
      require(++prefixes <= kMaxPrefixes, "{}: more than {} replacements for one text", where_, kMaxPrefixes);
      const std::size_t match = index ^ (unit >> 10U << ((unit & (1U << 9U)) >> 6U));
      require(match < units_.size(), "{}: unit {} leads out of its {} units", where_, index, units_.size());
      const std::uint32_t place = units_[match] & 0x7fffffffU;
      require(place < num_replacement_bytes_, "{}: unit {} leads to byte {} of {} of replacements", where_, index,
              place, num_replacement_bytes_);
    }
    open_.push_back({index, prefixes});
  }

  static constexpr std::uint32_t kLabelMask = 0x800000ffU;
  std::vector<std::uint32_t> units_;
  std::vector<bool> visited_;
  std::size_t num_replacement_bytes_;
  std::string where_;
  std::vector<Node> open_;
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
  CharsmapCheck(charsmap.substr(0, size), charsmap.substr(size), where).run();
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
