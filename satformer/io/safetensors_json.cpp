#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "satformer/core/error.h"
#include "satformer/io/safetensors_header.h"
#include "satformer/io/strict_json.h"

namespace satformer {

namespace {

constexpr std::size_t kMaxDimensions = 64;  // ATen's iterators take no more

// The events of a JSON parser, taken straight into entries: no document is built, so memory stays in proportion
// to the header. A handler returns true (go on) or throws; an error's text is made only when it is needed.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  HeaderReader(SafetensorsHeader& header, const std::string& source) : header_(header), source_(source) {}

  bool start_object(std::size_t) override {
    switch (place_) {
      case RankInfo::root:
        place_ = RankInfo::names;
        break;
      case RankInfo::tensor_value:
        place_ = RankInfo::fields;
        break;
      case RankInfo::metadata_value:
        place_ = RankInfo::metadata;
        break;
      default:
        unexpected("an object");
    }
    return true;
  }

  bool key(std::string& name) override {
    switch (place_) {
      case RankInfo::names:
        begin_item(name);
        break;
      case RankInfo::metadata:
        begin_metadata(name);
        break;
      default:
        begin_field(name);
        break;
    }
    return true;
  }

  bool end_object() override {
    switch (place_) {
      case RankInfo::fields:
        end_item();
        break;
      case RankInfo::metadata:
        place_ = RankInfo::names;
        break;
      default:
        place_ = RankInfo::end;
        break;
    }
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ == RankInfo::shape_value) {
      place_ = RankInfo::shape;
    } else if (place_ == RankInfo::offsets_value) {
      place_ = RankInfo::offsets;
    } else {
      unexpected("an array");
    }
    return true;
  }

  bool end_array() override {
    if (place_ == RankInfo::offsets && offset_count_ != 2) {
      fail("{}: data_offsets needs two numbers, got {}", where(), offset_count_);
    }
    place_ = RankInfo::fields;
    return true;
  }

  bool string(std::string& value) override {
    if (place_ == RankInfo::metadata_text) {
      header_.metadata[metadata_key_] = value;
      place_ = RankInfo::metadata;
    } else if (place_ == RankInfo::dtype_value) {
      set_dtype(value);
      place_ = RankInfo::fields;
    } else {
      unexpected("a string");
    }
    return true;
  }

  bool number_unsigned(std::uint64_t value) override {
    if (place_ == RankInfo::shape) {
      append_dimension(value);
    } else if (place_ == RankInfo::offsets) {
      if (offset_count_ == 2) fail("{}: data_offsets needs two numbers, got more", where());
      (offset_count_++ == 0 ? entry().begin : entry().end) = value;
    } else {
      unexpected("a number");
    }
    return true;
  }

  bool null() override { unexpected("null"); }
  bool boolean(bool) override { unexpected("a boolean"); }
  bool number_integer(std::int64_t) override { unexpected("a negative number"); }
  bool number_float(double, const std::string&) override { unexpected("a number that is no integer below 2^64"); }
  bool binary(nlohmann::json::binary_t&) override { unexpected("binary data"); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& error) override {
    fail("{}: the header is no valid JSON: byte {}: {}", source_, position, describe_json_error(error));
  }

 private:
  // Where the parser stands; a name that ends in `value` or `text` means that this value comes next.
  enum class RankInfo {
    root,
    names,
    tensor_value,
    fields,
    dtype_value,
    shape_value,
    shape,
    offsets_value,
    offsets,
    metadata_value,
    metadata,
    metadata_text,
    end
  };
  enum Field : unsigned { kDtype = 1, kShape = 2, kOffsets = 4 };

  SafetensorsEntry& entry() { return header_.entries.back(); }

  std::string where() const {
    switch (place_) {
      case RankInfo::root:
      case RankInfo::names:
      case RankInfo::end:
        return fmt::format("{}: header", source_);
      case RankInfo::metadata_value:
      case RankInfo::metadata:
      case RankInfo::metadata_text:
        return fmt::format("{}: {}", source_, kMetadataKey);
      default:
        return fmt::format("{}: tensor {}", source_, in_quotes(header_.entries.back().name));
    }
  }

  std::string_view expected() const {
    switch (place_) {
      case RankInfo::root:
        return "an object";
      case RankInfo::tensor_value:
        return "an object with dtype, shape and data_offsets";
      case RankInfo::metadata_value:
        return "an object of strings";
      case RankInfo::metadata_text:
        return "a string";
      case RankInfo::dtype_value:
        return "a dtype's name";
      case RankInfo::shape_value:
        return "shape to be an array";
      case RankInfo::offsets_value:
        return "data_offsets to be an array";
      case RankInfo::shape:
        return "shape to hold integers from 0 on";
      case RankInfo::offsets:
        return "data_offsets to hold integers from 0 on";
      default:
        return "nothing more";
    }
  }

  [[noreturn]] void unexpected(const char* got) const { fail("{}: expected {}, got {}", where(), expected(), got); }

  void begin_item(const std::string& name) {
    if (name == kMetadataKey) {
      if (metadata_seen_) fail("{}: duplicate key {}", where(), kMetadataKey);
      metadata_seen_ = true;
      place_ = RankInfo::metadata_value;
      return;
    }
    header_.entries.push_back({.name = name, .shape = {}});
    fields_ = 0;
    offset_count_ = 0;
    place_ = RankInfo::tensor_value;
  }

  void begin_metadata(const std::string& name) {
    if (header_.metadata.contains(name)) fail("{}: duplicate key {}", where(), in_quotes(name));
    metadata_key_ = name;
    place_ = RankInfo::metadata_text;
  }

  void begin_field(const std::string& name) {
    const unsigned field = name == "dtype" ? kDtype : name == "shape" ? kShape : name == "data_offsets" ? kOffsets : 0U;
    if (field == 0) fail("{}: unknown key {}, expected dtype, shape and data_offsets", where(), in_quotes(name));
    if ((fields_ & field) != 0) fail("{}: duplicate key {}", where(), in_quotes(name));
    fields_ |= field;
    place_ = field == kDtype   ? RankInfo::dtype_value
             : field == kShape ? RankInfo::shape_value
                               : RankInfo::offsets_value;
  }

  void end_item() {
    const char* missing = (fields_ & kDtype) == 0     ? "dtype"
                          : (fields_ & kShape) == 0   ? "shape"
                          : (fields_ & kOffsets) == 0 ? "data_offsets"
                                                      : nullptr;
    if (missing != nullptr) fail("{}: key \"{}\" is missing", where(), missing);
    place_ = RankInfo::names;
  }

  void set_dtype(const std::string& name) {
    const std::optional<SafetensorsType> type = dtype_from_name(name);
    if (!type) fail("{}: dtype {} cannot be read, expected one of {}", where(), in_quotes(name), dtype_names());
    entry().type = *type;
  }

  void append_dimension(std::uint64_t size) {
    constexpr auto kMaxSize = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (size > kMaxSize) fail("{}: a dimension of {} is too large", where(), size);
    if (entry().shape.size() == kMaxDimensions) fail("{}: more than {} dimensions", where(), kMaxDimensions);
    entry().shape.push_back(static_cast<std::int64_t>(size));
  }

  SafetensorsHeader& header_;
  const std::string& source_;
  RankInfo place_ = RankInfo::root;
  bool metadata_seen_ = false;
  std::string metadata_key_;
  unsigned fields_ = 0;
  int offset_count_ = 0;
};

}  // namespace

SafetensorsHeader read_safetensors_json(std::string_view json, const std::string& source) {
  require(!json.empty() && json.front() == '{', "{}: the header does not begin with {{; this is no safetensors file",
          source);
  // The parser would take a zero byte for the end of its input and never look at the rest.
  require(json.find('\0') == json.npos, "{}: a zero byte in the header", source);
  SafetensorsHeader header;
  HeaderReader reader(header, source);
  nlohmann::json::sax_parse(json.begin(), json.end(), &reader);
  return header;
}

}  // namespace satformer
