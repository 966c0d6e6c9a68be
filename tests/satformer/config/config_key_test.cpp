// Rows of a configuration: what follows from a member.
#include "satformer/config/config_key.h"

#include "satformer/config/key_checks.h"
#include "tests/support/errors.h"

#include "tests/catch.h"

namespace satformer {
namespace {

using nlohmann::json;
using testing::error_of;

struct Part {
  double rate = 0.5;
};
struct Example {
  std::int64_t width = 8;
  std::uint64_t seed = 3;
  bool fast = true;
  std::string kind = "plain";
  std::filesystem::path folder = "here";
  std::optional<std::int64_t> window;
  std::int64_t heads = 0;
  Part part;
};

const std::vector<ConfigKey<Example>>& rows() {
  using E = Example;
  static const std::vector<ConfigKey<E>> list{
      {"width", &E::width, "of the model", between(1, 64)},
      {"seed", &E::seed, "of random numbers", at_least(0)},
      {"fast", &E::fast, "or slow"},
      {"kind", &E::kind, "plain, round or square", one_of({"plain", "round", "square"})},
      {"folder", &E::folder, "of the data"},
      {"window", &E::window, "null: none", between(1, &E::width)},
      ConfigKey<E>("heads", &E::heads, "null: from width").derived(),
      ConfigKey<E>("rate", &E::part, &Part::rate, "of a part", at_least(0.0, 1.0)).input_only()};
  return list;
}

std::string error_for(const json& values) {
  return error_of([&] {
    Example example;
    read_keys(rows(), values, "e.json", example);
  });
}

struct Whole {
  Example example;
};

}  // namespace

TEST_CASE("a key's type and default are its member's", "[config]") {
  KeyList keys;
  append_keys(rows(), keys);
  const json expected{8, 3, true, "plain", "here", nullptr, nullptr, 0.5};
  const KeyType types[] = {KeyType::integer, KeyType::integer, KeyType::boolean, KeyType::string,
                           KeyType::string,  KeyType::integer, KeyType::integer, KeyType::number};
  for (std::size_t i = 0; i < keys.size(); ++i) {
    INFO(keys[i].path);
    CHECK(keys[i].default_value == expected[i]);
    CHECK(keys[i].type == types[i]);
  }
}

TEST_CASE("rows read what is given and write all members", "[config]") {
  Example example;
  read_keys(rows(), {{"width", 16}, {"folder", "there"}, {"window", 16}, {"fast", nullptr}, {"rate", 0.25}}, "e.json",
            example);
  CHECK(example.width == 16);
  CHECK(example.fast);
  CHECK(example.folder == "there");
  CHECK(example.window == 16);
  CHECK(example.part.rate == 0.25);
  json written;
  write_keys(rows(), example, written);
  CHECK(written == json{{"width", 16},
                        {"seed", 3},
                        {"fast", true},
                        {"kind", "plain"},
                        {"folder", "there"},
                        {"window", 16},
                        {"heads", 0}});
}

TEST_CASE("a row's check names the source, the key, what is expected and the value", "[config]") {
  CHECK(error_for({{"width", 65}}) == "e.json: width must be 1 .. 64, got 65");
  CHECK(error_for({{"window", 9}}) == "e.json: window must be 1 .. 8, got 9");
  CHECK(error_for({{"width", 16}, {"window", 9}}).empty());
  CHECK(error_for({{"seed", -1}}) == "e.json: seed is -1, expected an integer of at least 0");
  CHECK(error_for({{"rate", 1.0}}) == "e.json: rate is 1, expected a number of at least 0 and below 1");
  CHECK(error_for({{"kind", "oval"}}) == "e.json: kind must be plain, round or square, got \"oval\"");
}

TEST_CASE("a section's rows stand under its name", "[config]") {
  const auto section = ConfigKey<Whole>::section("part", &Whole::example, rows());
  CHECK(section.front().key.path == "part.width");
  Whole whole;
  read_keys(section, {{"part", {{"width", 32}}}}, "w.json", whole);
  CHECK(whole.example.width == 32);
  CHECK(error_of([&] { read_keys(section, {{"part", {{"width", 0}}}}, "w.json", whole); }) ==
        "w.json: part.width must be 1 .. 64, got 0");
}

}  // namespace satformer
