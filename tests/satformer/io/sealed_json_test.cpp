#include "satformer/io/sealed_json.h"

#include <nlohmann/json.hpp>

#include "tests/support/errors.h"

#include "tests/catch.h"

namespace {

using namespace satformer;
using satformer::testing::contains;
using satformer::testing::error_of;

const nlohmann::json kValue{{"a", 1}, {"b", {{"crc32", "x"}, {"c", "d\n"}}}};

}  // namespace

TEST_CASE("sealed JSON stays JSON and comes back", "[core]") {
  for (const int indent : {1, 2, 4}) {
    const std::string text = kValue.dump(indent) + "\n";
    const std::string sealed = seal_json(text);
    CHECK(unseal_json(sealed, "file") == text);
    nlohmann::json parsed = nlohmann::json::parse(sealed);
    CHECK(parsed["crc32"].get<std::string>().size() == 8);
    parsed.erase("crc32");
    CHECK(parsed == kValue);
  }
  // Computed with Python's zlib.crc32.
  CHECK(seal_json("{\n \"a\": 1\n}\n") == "{\n \"crc32\": \"30ff650c\",\n \"a\": 1\n}\n");
}

TEST_CASE("every change of sealed JSON is found", "[core]") {
  const std::string sealed = seal_json(kValue.dump(1) + "\n");
  for (std::size_t at = 0; at < sealed.size(); ++at) {
    for (int mask = 1; mask < 256; ++mask) {
      std::string changed = sealed;
      changed[at] = static_cast<char>(changed[at] ^ mask);
      REQUIRE(contains(error_of([&] { unseal_json(changed, "file"); }), "file: damaged"));
    }
    REQUIRE(contains(error_of([&] { unseal_json(sealed.substr(0, at), "file"); }), "file: damaged"));
    std::string longer = sealed;
    longer.insert(at, 1, sealed[at]);
    REQUIRE(contains(error_of([&] { unseal_json(longer, "file"); }), "file: damaged"));
  }
  CHECK(contains(error_of([&] { unseal_json(kValue.dump(1), "file"); }), "file: damaged"));  // never sealed
}

TEST_CASE("only an indented object with members can be sealed", "[core]") {
  for (const char* text : {"", "{", "{\n", "{}", "{\n}", "{\"a\": 1}", "[\n 1\n]", "\n\"a\"", "{\n   "}) {
    CHECK(contains(error_of([&] { seal_json(text); }), "indented"));
  }
}
