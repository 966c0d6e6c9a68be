// JSON lines: a JSON object a line; its key --field holds the document's text. Lines of white space are skipped. Error
// names the file and line: no JSON, no object, field missing or no string.
#include <nlohmann/json.hpp>

#include "satformer/core/error.h"
#include "satformer/data/corpus.h"
#include "satformer/data/line_splitter.h"
#include "satformer/data/text_source.h"
#include "satformer/io/strict_json.h"

namespace satformer::data {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxJsonLine = std::size_t{1} << 28;  // bytes; bounds the memory

CorpusOption field_option() {
  return {.name = "field", .default_value = "text", .help = "JSONL: the key that holds the text", .choices = {}};
}

// Receives nlohmann's parsing events and keeps one string: the value of `field` at the top level.
class FieldReader : public nlohmann::json_sax<json> {
 public:
  explicit FieldReader(const std::string& field) : field_(field) {}

  bool is_object() const { return is_object_; }
  bool found() const { return found_; }
  const char* other_type() const { return other_type_; }  // of the field's value where it is no string
  const std::string& value() const { return value_; }
  const std::string& problem() const { return problem_; }

  bool null() override { return scalar("null"); }
  bool boolean(bool) override { return scalar("a boolean"); }
  bool number_integer(number_integer_t) override { return scalar("a number"); }
  bool number_unsigned(number_unsigned_t) override { return scalar("a number"); }
  bool number_float(number_float_t, const string_t&) override { return scalar("a number"); }
  bool binary(binary_t&) override { return scalar("binary"); }
  bool string(string_t& text) override {
    scalar(nullptr);
    if (found_ && wanted_) value_ = std::move(text);
    wanted_ = false;
    return true;
  }
  bool start_object(std::size_t) override {
    if (depth_ == 0) is_object_ = true;
    scalar("an object");
    ++depth_;
    return true;
  }
  bool start_array(std::size_t) override {
    scalar("an array");
    ++depth_;
    return true;
  }
  bool end_object() override { return --depth_, true; }
  bool end_array() override { return --depth_, true; }
  bool key(string_t& name) override {
    wanted_ = depth_ == 1 && name == field_;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const json::exception& error) override {
    problem_ = fmt::format("{} (byte {} of the line)", describe_json_error(error), position);
    return false;
  }

 private:
  // Any value: where it is the wanted one, notes its type (null for a string).
  bool scalar(const char* type) {
    if (depth_ == 1 && wanted_) {
      found_ = true;
      other_type_ = type;
      if (type != nullptr) wanted_ = false;
    }
    return true;
  }

  const std::string& field_;
  int depth_ = 0;
  bool is_object_ = false, wanted_ = false, found_ = false;
  const char* other_type_ = nullptr;
  std::string value_, problem_;
};

class JsonlReader {
 public:
  JsonlReader(const std::filesystem::path& path, const CorpusOptions& options, DocumentSink& sink)
      : path_(path), field_(value_of(field_option(), options)), sink_(sink) {}

  void append(std::string_view text) {
    require(line_.size() + text.size() <= kMaxJsonLine, "{}, line {}: longer than {} MiB; cut the document",
            path_.string(), line_number_, kMaxJsonLine >> 20);
    line_ += text;
  }

  void end_line() {
    if (line_.find_first_not_of(" \t\r") != std::string::npos) emit_document();
    line_.clear();
    if (line_.capacity() > kKeptCapacity) line_ = std::string();
    ++line_number_;
  }

 private:
  static constexpr std::size_t kKeptCapacity = std::size_t{1} << 20;

  void emit_document() {
    FieldReader reader(field_);
    const bool parsed = json::sax_parse(line_, &reader);
    require(parsed, "{}, line {}: not JSON: {}", path_.string(), line_number_, reader.problem());
    require(reader.is_object(), "{}, line {}: a JSON object was expected", path_.string(), line_number_);
    require(reader.found(), "{}, line {}: no field '{}' (--field names the one with the text)", path_.string(),
            line_number_, field_);
    require(reader.other_type() == nullptr, "{}, line {}: field '{}' is {}, expected a string", path_.string(),
            line_number_, field_, reader.other_type() == nullptr ? "" : reader.other_type());
    const std::string& text = reader.value();
    const std::size_t zero = text.find('\0');
    require(zero == std::string::npos, "{}, line {}: U+0000 at byte {} of field '{}'; remove it first", path_.string(),
            line_number_, zero, field_);
    if (!text.empty()) sink_.text(text);
    sink_.end_document();
  }

  const std::filesystem::path& path_;
  const std::string field_;
  DocumentSink& sink_;
  std::string line_;
  std::int64_t line_number_ = 1;
};

void read_jsonl(const std::filesystem::path& path, const CorpusOptions& options, DocumentSink& sink,
                const ReadProgress& progress) {
  TextSource source(path);
  JsonlReader reader(path, options, sink);
  LineSplitter splitter([&](std::string_view text) { reader.append(text); },
                        [&](std::string_view) { reader.end_line(); });
  for (std::string_view part = source.next(); !part.empty(); part = source.next()) {
    splitter.push(part);
    progress(source.file_position());
  }
  splitter.finish();
  reader.end_line();
}

}  // namespace

CorpusFormat jsonl_corpus() {
  return {.name = "jsonl",
          .extensions = {".jsonl", ".ndjson", ".json-lines"},
          .options = {field_option()},
          .read = read_jsonl};
}

}  // namespace satformer::data
