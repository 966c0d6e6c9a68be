#include "satformer/io/strict_json.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "satformer/core/error.h"

namespace satformer {

using nlohmann::json;

namespace {

constexpr std::size_t kMaxShown = 160;  // characters of foreign text in an error

std::string shorten(std::string text) {
  if (text.size() <= kMaxShown) return text;
  std::size_t end = kMaxShown;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;  // not inside a character
  text.resize(end);
  return text + "...";
}

std::string dump_safely(const json& value) {
  return value.dump(-1, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace);
}

// Builds a value from the parser's events.
class Builder : public nlohmann::json_sax<json> {
 public:
  Builder(const std::string& text, const std::string& source) : text_(text), source_(source) {}

  json take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(std::int64_t value) override { return add(value); }
  bool number_unsigned(std::uint64_t value) override { return add(value); }
  bool number_float(double value, const std::string&) override { return add(value); }
  bool string(std::string& value) override { return add(std::move(value)); }
  bool binary(json::binary_t&) override { fail("{}: binary data in JSON", source_); }

  bool start_object(std::size_t) override { return open(json::object()); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(json::array()); }
  bool end_array() override { return close(); }

  bool key(std::string& name) override {
    keys_.back() = name;
    if (open_.back()->contains(name)) fail("{}: duplicate key {}", source_, in_quotes(path()));
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const json::exception& error) override {
    // `position` counts the characters read, the offending one included.
    const std::size_t last = std::min(position == 0 ? 0 : position - 1, text_.size());
    const auto begin = text_.begin();
    const auto line = 1 + std::count(begin, begin + static_cast<std::ptrdiff_t>(last), '\n');
    const std::size_t newline = last == 0 ? text_.npos : text_.rfind('\n', last - 1);
    const std::size_t column = newline == text_.npos ? last + 1 : last - newline;
    fail("{}:{}:{}: {}", source_, line, column, describe_json_error(error));
  }

 private:
  template <typename Value>
  bool add(Value&& value) {
    insert(json(std::forward<Value>(value)));
    return true;
  }

  json* insert(json value) {
    if (open_.empty()) return &(root_ = std::move(value));
    json& parent = *open_.back();
    if (parent.is_object()) return &(parent[keys_.back()] = std::move(value));
    parent.push_back(std::move(value));
    return &parent.back();
  }

  bool open(json container) {
    require(open_.size() < kMaxJsonDepth, "{}: nested more than {} levels deep", source_, kMaxJsonDepth);
    open_.push_back(insert(std::move(container)));
    keys_.emplace_back();
    return true;
  }

  bool close() {
    open_.pop_back();
    keys_.pop_back();
    return true;
  }

  std::string path() const {
    std::string joined;
    for (const std::string& name : keys_) joined += (joined.empty() || name.empty() ? "" : ".") + name;
    return joined;
  }

  const std::string& text_;
  const std::string& source_;
  json root_;
  std::vector<json*> open_;        // a child is only ever added to the last, so these stay valid
  std::vector<std::string> keys_;  // of each open container: the current key; empty in arrays
};

}  // namespace

json parse_strict_json(const std::string& text, const std::string& source) {
  // The parser would take a zero byte for the end of its input and never look at the rest.
  require(text.find('\0') == text.npos, "{}: a zero byte in JSON text", source);
  Builder builder(text, source);
  json::sax_parse(text, &builder);
  return builder.take();
}

std::string describe_json_error(const json::exception& error) {
  std::string text = error.what();
  // "[json.exception.parse_error.101] parse error at line 1, column 2: REASON"
  if (const auto prefix = text.find("] "); prefix != text.npos) text.erase(0, prefix + 2);
  if (text.starts_with("parse error")) {
    if (const auto colon = text.find(": "); colon != text.npos) text.erase(0, colon + 2);
  }
  return printable(std::move(text));
}

std::string printable(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7F) c = '?';
  }
  return shorten(std::move(text));
}

std::string in_quotes(std::string_view text) { return shortened(json(text.substr(0, 4 * kMaxShown))); }

std::string shortened(const json& value) { return shorten(dump_safely(value)); }

}  // namespace satformer
