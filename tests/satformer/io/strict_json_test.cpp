#include "satformer/io/strict_json.h"

#include "tests/support/errors.h"

#include "tests/catch.h"

namespace satformer {
namespace {

using testing::contains;
using testing::error_of;

std::string error_for(const std::string& text) {
  return error_of([&] { parse_strict_json(text, "f.json"); });
}

TEST_CASE("strict JSON is the value it says", "[core][json]") {
  const std::string text = R"({"a": [1, -2, 2.5, "x\u00e9", true, null, {}], "b": {"a": 18446744073709551615}})";
  CHECK(parse_strict_json(text, "f") == nlohmann::json::parse(text));
  CHECK(parse_strict_json(" 5 ", "f") == 5);
  CHECK(parse_strict_json("{\"a\":{\"x\":1},\"b\":{\"x\":2}}", "f")["b"]["x"] == 2);
}

TEST_CASE("syntax errors have file, line and column", "[core][json]") {
  CHECK(error_for("{\n  \"a\": 1,\n  \"b\" 2\n}").starts_with("f.json:3:7: "));
  CHECK(error_for("x").starts_with("f.json:1:1: "));
  CHECK(error_for("{\n").starts_with("f.json:2:1: "));
  CHECK(error_for("").starts_with("f.json:1:1: "));
  for (const char* bad : {"{} x", "{}{}", "{\"a\":1,}", "[1,]", "// c\n{}", "{/**/}", "{'a':1}", "{a:1}", "NaN", "01",
                          "\"\xff\"", "\"\n\"", "1e999", "[1", "\"a"}) {
    INFO(bad);
    const std::string message = error_for(bad);
    CHECK(message.starts_with("f.json:1:"));
    CHECK(!contains(message, "\n"));
  }
  CHECK(error_for("\"" + std::string(1'000'000, 'a')).size() < 300);
}

TEST_CASE("duplicate keys, zero bytes and deep nesting are errors", "[core][json]") {
  CHECK(error_for(R"({"a": {"b": 1, "c": {}, "b": 2}})") == R"(f.json: duplicate key "a.b")");
  CHECK(error_for(R"({"a": 1, "a": 1})") == R"(f.json: duplicate key "a")");
  CHECK(error_for(R"([{"a": [0, {"b": 1, "b": 1}]}])") == R"(f.json: duplicate key "a.b")");
  CHECK(contains(error_for(std::string("{}\0x", 4)), "a zero byte"));
  CHECK(contains(error_for(std::string(10'000'000, '[')), "nested more than 64 levels"));
  CHECK(error_for(std::string(64, '[') + std::string(64, ']')).empty());
}

TEST_CASE("foreign text in an error is short and on one line", "[core][json]") {
  CHECK(in_quotes("a\nb\"") == R"("a\nb\"")");
  CHECK(in_quotes(std::string(1000, 'a')).size() < 200);
  CHECK(shortened({{"k", 1}}) == R"({"k":1})");
  CHECK(!in_quotes("\xff").empty());
  std::string accents;
  for (int i = 0; i < 500; ++i) accents += "\u00e9";
  CHECK(nlohmann::json(in_quotes(accents)).dump().size() < 400);  // dump() throws on half a character
}

}  // namespace
}  // namespace satformer
