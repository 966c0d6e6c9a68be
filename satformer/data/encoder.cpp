#include "satformer/data/encoder.h"

#include <algorithm>

#include "satformer/data/tokenizer_impl.h"

namespace satformer::data {
namespace {

constexpr std::size_t kMaxWords = std::size_t{1} << 16;
constexpr std::size_t kMaxWordBytes = 48;  // longer ones are rare: not remembered

// Where the word that begins at `begin` ends: a newline alone, a literal U+2581 alone, or spaces and what follows.
std::size_t word_end(std::string_view text, std::size_t begin) {
  if (text[begin] == '\n') return begin + 1;
  if (text.substr(begin).starts_with(kSpaceSymbol)) return begin + kSpaceSymbol.size();
  std::size_t at = begin;
  while (at < text.size() && text[at] == ' ') ++at;
  for (; at < text.size() && text[at] != ' ' && text[at] != '\n'; ++at) {
    if (text[at] == kSpaceSymbol[0] && text.substr(at).starts_with(kSpaceSymbol)) break;
  }
  return at;
}

}  // namespace

void Encoder::encode(std::string_view text, bool continuation, std::vector<std::int32_t>& ids) {
  if (text.empty()) return;
  if (tokenizer_.impl_->splits_words) return encode_words(text, continuation, ids);
  encode_word(text, continuation, ids);
}

void Encoder::encode_words(std::string_view text, bool continuation, std::vector<std::int32_t>& ids) {
  const Tokenizer::Impl& model = *tokenizer_.impl_;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = word_end(text, begin);
    const std::string_view word = text.substr(begin, end - begin);
    begin = end;
    if (model.has_byte_pieces && word == kSpaceSymbol) {
      // At the start of a text the space that decoding takes away must be there.
      if (!continuation)
        ids.insert(ids.end(), model.newline_ids.begin(), model.newline_ids.begin() + model.dummy_prefix);
      ids.insert(ids.end(), model.space_symbol_bytes.begin(), model.space_symbol_bytes.end());
    } else if (const auto known = continuation ? words_.find(word) : words_.end(); known != words_.end()) {
      const auto first = remembered_ids_.begin() + known->second.begin;
      ids.insert(ids.end(), first, first + known->second.count);
    } else {
      const std::size_t old_size = ids.size();
      encode_word(word, continuation, ids);
      if (continuation) remember(word, ids.data() + old_size, ids.size() - old_size);
    }
    continuation = true;
  }
}

void Encoder::encode_word(std::string_view word, bool continuation, std::vector<std::int32_t>& ids) {
  const Tokenizer::Impl& model = *tokenizer_.impl_;
  std::size_t drop = 0;
  std::vector<std::int32_t> encoded;
  if (continuation && model.splits_words && model.dummy_prefix == 1 && word.size() > 1 && word.front() == ' ') {
    encoded = model.encode_plain(word.substr(1));  // the model puts the space back
  } else if (continuation && model.continues) {
    std::string after_newline("\n");
    after_newline += word;
    encoded = model.encode_plain(after_newline);
    const bool as_expected = encoded.size() >= model.newline_ids.size() &&
                             std::equal(model.newline_ids.begin(), model.newline_ids.end(), encoded.begin());
    if (as_expected) {
      drop = model.newline_ids.size();
    } else {
      encoded = model.encode_plain(word);
    }
  } else {
    encoded = model.encode_plain(word);
  }
  ids.insert(ids.end(), encoded.begin() + static_cast<std::ptrdiff_t>(drop), encoded.end());
}

void Encoder::remember(std::string_view word, const std::int32_t* ids, std::size_t count) {
  if (word.size() > kMaxWordBytes) return;
  if (words_.size() >= kMaxWords) {
    words_.clear();
    remembered_ids_.clear();
  }
  words_.emplace(word, Range{static_cast<std::uint32_t>(remembered_ids_.size()), static_cast<std::uint32_t>(count)});
  remembered_ids_.insert(remembered_ids_.end(), ids, ids + count);
}

}  // namespace satformer::data
