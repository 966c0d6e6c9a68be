#pragma once
// JSON as the standard has it, and no more: one value, unique keys in every object, no comments, no bytes after
// it, bounded nesting (so that nothing that walks the value can run out of stack).
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace satformer {

constexpr std::size_t kMaxJsonDepth = 64;

// Errors: "SOURCE:LINE:COLUMN: REASON" for bad syntax, "SOURCE: duplicate key "a.b"" for repeated keys.
nlohmann::json parse_strict_json(const std::string& text, const std::string& source);

// The reason inside an exception of nlohmann's, on one line, shortened, without position and prefix.
std::string describe_json_error(const nlohmann::json::exception& error);

// A foreign library's message, fit for one line of an error: shortened, and ? for what is no printable ASCII.
std::string printable(std::string text);

// The text in quotes, escaped and shortened, fit for one line of an error.
std::string in_quotes(std::string_view text);

// A value as JSON, shortened, fit for one line of an error.
std::string shortened(const nlohmann::json& value);

}  // namespace satformer
