#include "satformer/data/text_source.h"

#include <algorithm>
#include <cstring>

#include "satformer/core/error.h"
#include "satformer/core/utf8.h"

namespace satformer::data {
namespace {
constexpr std::size_t kBufferBytes = 1 << 18;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
}  // namespace

TextSource::TextSource(const std::filesystem::path& path)
    : path_(path), source_(open_byte_source(path)), buffer_(kBufferBytes) {}

std::string_view TextSource::next() {
  // What remains of the last part is the beginning of one character.
  std::copy(buffer_.begin() + taken_, buffer_.begin() + filled_, buffer_.begin());
  offset_ += taken_;
  filled_ -= taken_;
  taken_ = 0;
  while (true) {
    const std::size_t count = source_->read(std::span(buffer_).subspan(filled_));
    filled_ += count;
    const std::string_view bytes(buffer_.data(), filled_);
    const Utf8Check check = check_utf8(bytes);
    const std::string_view text = bytes.substr(0, check.valid_bytes);
    if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
      fail("{}: U+0000 at byte {}: text must not hold NUL characters; remove them first", path_.string(),
           offset_ + zero);
    }
    if (check.status == Utf8Status::invalid) fail_invalid(check.valid_bytes, false);
    if (count == 0 && check.status == Utf8Status::incomplete) fail_invalid(check.valid_bytes, true);
    if (text.empty() && count > 0) continue;  // a character in parts
    taken_ = text.size();
    const bool has_mark = offset_ == 0 && text.starts_with(kByteOrderMark);
    if (has_mark && text.size() == kByteOrderMark.size() && count > 0) return next();
    return has_mark ? text.substr(kByteOrderMark.size()) : text;
  }
}

void TextSource::fail_invalid(std::size_t index, bool at_end) const {
  fail("{}: not UTF-8: byte 0x{:02x} at byte {} {}; convert the file first (iconv -t UTF-8)", path_.string(),
       static_cast<unsigned char>(buffer_[index]), offset_ + index,
       at_end ? "begins a character that the end of the file cuts off" : "begins no valid character");
}

}  // namespace satformer::data
