#include "satformer/data/tokenizer.h"

#include <algorithm>
#include <utility>

#include "satformer/core/error.h"
#include "satformer/data/encoder.h"
#include "satformer/data/sentencepiece_check.h"
#include "satformer/data/tokenizer_impl.h"
#include "satformer/io/files.h"
#include "satformer/io/strict_json.h"

namespace satformer::data {
namespace {

constexpr std::uint64_t kMaxModelBytes = std::uint64_t{1} << 28;

// A space after anything but spaces: such a piece would reach into the next word.
bool crosses_words(std::string_view piece) {
  bool in_word = false;
  while (!piece.empty()) {
    const bool is_symbol = piece.starts_with(kSpaceSymbol);
    if (is_symbol || piece.front() == ' ') {
      if (in_word) return true;
    } else {
      in_word = true;
    }
    piece.remove_prefix(is_symbol ? kSpaceSymbol.size() : 1);
  }
  return false;
}

}  // namespace

Tokenizer::Tokenizer(const std::filesystem::path& model_file)
    : Tokenizer(read_file(model_file, kMaxModelBytes), model_file.string()) {}

Tokenizer::Tokenizer(std::string model, const std::string& source) : impl_(std::make_unique<Impl>()) {
  impl_->model = std::move(model);
  impl_->load(source);
}

Tokenizer Tokenizer::from_serialized(std::string model, const std::string& source) {
  return Tokenizer(std::move(model), source);
}

Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

std::int64_t Tokenizer::vocab_size() const { return impl_->processor.GetPieceSize(); }
std::int64_t Tokenizer::unknown_id() const { return impl_->processor.unk_id(); }
std::int64_t Tokenizer::bos_id() const { return impl_->processor.bos_id(); }
std::int64_t Tokenizer::eos_id() const { return impl_->processor.eos_id(); }
const std::string& Tokenizer::serialized() const { return impl_->model; }

std::vector<std::int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<std::int32_t> ids;
  Encoder(*this).encode(text, false, ids);
  return ids;
}

std::vector<std::int32_t> Tokenizer::encode_whole(std::string_view text) const { return impl_->encode_plain(text); }

std::string Tokenizer::decode(const std::vector<std::int32_t>& ids) const {
  for (const std::int32_t id : ids) {
    require(id >= 0 && id < vocab_size(), "decode: id {} is outside the tokenizer's vocabulary of {}", id,
            vocab_size());
  }
  return impl_->decode(ids);
}

std::int64_t Tokenizer::piece_bytes(std::int64_t id) const {
  require(id >= 0 && id < vocab_size(), "piece_bytes: id {} is outside the tokenizer's vocabulary of {}", id,
          vocab_size());
  const int piece_id = static_cast<int>(id);
  const auto& processor = impl_->processor;
  if (processor.IsControl(piece_id) || processor.IsUnknown(piece_id)) return 0;
  if (processor.IsByte(piece_id)) return 1;
  const std::string& piece = processor.IdToPiece(piece_id);
  auto bytes = static_cast<std::int64_t>(piece.size());
  for (std::size_t at = 0; (at = piece.find(kSpaceSymbol, at)) != std::string::npos; at += kSpaceSymbol.size()) {
    bytes -= static_cast<std::int64_t>(kSpaceSymbol.size()) - 1;
  }
  return bytes;
}

std::string Tokenizer::piece_text(std::int64_t id) const {
  require(id >= 0 && id < vocab_size(), "piece_text: id {} is outside the tokenizer's vocabulary of {}", id,
          vocab_size());
  const int piece_id = static_cast<int>(id);
  const auto& processor = impl_->processor;
  if (processor.IsControl(piece_id) || processor.IsUnknown(piece_id)) return "";
  std::string text = processor.IdToPiece(piece_id);
  if (processor.IsByte(piece_id)) return {static_cast<char>(std::stoi(text.substr(3, 2), nullptr, 16))};  // <0xE2>
  for (std::size_t at = 0; (at = text.find(kSpaceSymbol, at)) != std::string::npos; ++at) {
    text.replace(at, kSpaceSymbol.size(), 1, ' ');
  }
  return text;
}

void Tokenizer::Impl::load(const std::string& source) {
  check_sentencepiece_model(model, source);
  const auto status = processor.LoadFromSerializedProto(absl::string_view(model.data(), model.size()));
  require(status.ok() && processor.GetPieceSize() > 0, "{}: no SentencePiece model: {}", source,
          printable(status.ToString()));
  inspect_pieces();
  probe();
}

std::vector<std::int32_t> Tokenizer::Impl::encode_plain(std::string_view text) const {
  std::vector<std::int32_t> ids;
  const auto status = processor.Encode(absl::string_view(text.data(), text.size()), &ids);
  require(status.ok(), "SentencePiece cannot encode the text: {}", printable(status.ToString()));
  return ids;
}

std::string Tokenizer::Impl::decode(const std::vector<std::int32_t>& ids) const {
  std::string text;
  const auto status = processor.Decode(ids, &text);
  require(status.ok(), "SentencePiece cannot decode the ids: {}", printable(status.ToString()));
  return text;
}

void Tokenizer::Impl::inspect_pieces() {
  splits_words = true;
  std::array<std::int32_t, 3> bytes{-1, -1, -1};
  for (int id = 0; id < processor.GetPieceSize(); ++id) {
    const std::string& piece = processor.IdToPiece(id);
    if (processor.IsByte(id)) {
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (piece == fmt::format("<0x{:02X}>", static_cast<unsigned char>(kSpaceSymbol[i]))) bytes[i] = id;
      }
    } else if (!processor.IsControl(id) && !processor.IsUnknown(id)) {
      const bool joins_newline = piece.find('\n') != std::string::npos && piece != "\n";
      if (joins_newline || crosses_words(piece)) splits_words = false;
    }
  }
  has_byte_pieces = std::none_of(bytes.begin(), bytes.end(), [](std::int32_t id) { return id < 0; });
  if (has_byte_pieces) space_symbol_bytes = bytes;
}

// The normaliser cannot be asked for, so its effects are looked at: collapsed spaces, changed newlines, a space at
// the end of texts instead of the start.
void Tokenizer::Impl::probe() {
  newline_ids = encode_plain("\n");
  dummy_prefix = !newline_ids.empty() && processor.IdToPiece(newline_ids.front()) == kSpaceSymbol ? 1 : 0;
  for (const char* text : {"\n", "a  b", " a ", "  a\n\n b", "\n  a\n"}) {
    if (decode(encode_plain(text)) != text) {
      splits_words = false;
      return;
    }
  }
  const auto joined = [this](const char* first, const char* second) {
    std::vector<std::int32_t> ids = encode_plain(first);
    const std::vector<std::int32_t> rest = encode_plain(std::string("\n") + second);
    if (rest.size() < newline_ids.size() || !std::equal(newline_ids.begin(), newline_ids.end(), rest.begin())) {
      return std::vector<std::int32_t>{};
    }
    ids.insert(ids.end(), rest.begin() + static_cast<std::ptrdiff_t>(newline_ids.size()), rest.end());
    return ids;
  };
  continues = joined("a\n", "b") == encode_plain("a\nb") && joined("a\n", " b c") == encode_plain("a\n b c");
  if (!continues) splits_words = false;
}

}  // namespace satformer::data
