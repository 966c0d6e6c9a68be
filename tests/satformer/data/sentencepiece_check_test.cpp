#include "satformer/data/sentencepiece_check.h"

#include <cstring>
#include <limits>
#include <string>

#include "satformer/data/tokenizer.h"
#include "satformer/io/files.h"
#include "tests/paths.h"
#include "tests/satformer/data/support.h"

#include "tests/catch.h"

namespace satformer::data {
namespace {

using testing::contains;
using testing::error_of;

// A model whose table replaces A by a: 256 units, of which 0 is the root, 64 stands for A and 2 for its end.
std::string charsmap_model() { return read_file(testing::source_dir() / "tests/fuzz/corpus/tokenizer/charsmap"); }

std::string with_unit(std::size_t index, std::uint32_t unit) {
  std::string model = charsmap_model();
  const std::size_t table = model.find(std::string("\0\4\0\0", 4)) + 4;  // after its size, 1024 bytes
  std::memcpy(model.data() + table + 4 * index, &unit, sizeof(unit));
  return model;
}

// A model of one piece.
std::string with_piece(const std::string& text, float score = 0, char type = 1) {
  std::string piece = "\x0a" + std::string(1, static_cast<char>(text.size())) + text + "\x15";
  piece.append(reinterpret_cast<const char*>(&score), sizeof(score));
  piece += std::string("\x18") + type;
  return "\x0a" + std::string(1, static_cast<char>(piece.size())) + piece;
}

std::string fault_of(const std::string& model) {
  return error_of([&] { check_sentencepiece_model(model, "t.model"); });
}

}  // namespace

TEST_CASE("A model's replacements work, and are checked", "[data][tokenizer]") {
  const Tokenizer tokenizer = Tokenizer::from_serialized(charsmap_model(), "t.model");
  CHECK(tokenizer.encode_whole("A") == tokenizer.encode_whole("a"));
  CHECK(fault_of(with_unit(0, 1U << 10U)).empty());  // as it is
  CHECK(contains(fault_of(with_unit(0, 1U << 20U)), "unit 0 leads out of its 256 units"));
  CHECK(contains(fault_of(with_unit(64, 1U << 20U | 1U << 8U | 'A')), "unit 64 leads out of its 256 units"));
  CHECK(contains(fault_of(with_unit(2, 1U << 31U | 999U)), "unit 64 leads to byte 999 of 2"));
  CHECK(contains(fault_of(with_unit(64, 65U << 10U | 'A')), "unit 64 leads back to itself"));
  std::string endless = charsmap_model();
  endless[endless.rfind(std::string("a\0", 2)) + 1] = 'b';
  CHECK(contains(fault_of(endless), "its last replacement has no end"));
}

TEST_CASE("Pieces that SentencePiece would stumble over are told", "[data][tokenizer]") {
  CHECK(fault_of(with_piece("a")).empty());
  CHECK(fault_of(with_piece("<0xE2>", 0, 6)).empty());
  CHECK(contains(fault_of(with_piece("")), "t.model: piece 0 \"\": expected 1 to 8000 bytes"));
  CHECK(contains(fault_of(with_piece(std::string("a\0b", 3))), "holds U+0000"));
  CHECK(contains(fault_of(with_piece("\xff")), "is no UTF-8"));
  CHECK(contains(fault_of(with_piece("a", std::numeric_limits<float>::quiet_NaN())), "is no finite number"));
  CHECK(contains(fault_of(with_piece("<0xZZ>", 0, 6)), "a byte piece is written <0x00> to <0xFF>"));
  CHECK(contains(fault_of(with_piece("a").substr(0, 5)), "t.model: no SentencePiece model"));
}

}  // namespace satformer::data
