#include "satformer/config/config.h"

#include "satformer/io/files.h"
#include "tests/support/errors.h"
#include "tests/support/folders.h"

#include "tests/catch.h"

namespace satformer {
namespace {

using nlohmann::json;
using testing::contains;
using testing::error_of;
using testing::TemporaryFolder;
using Strings = std::vector<std::string>;

const KeyList kKeys{
    {.path = "model.architecture",
     .type = KeyType::string,
     .default_value = {},
     .help = "which model",
     .required = true},
    {.path = "model.config_overrides.hidden_size", .type = KeyType::integer, .default_value = 64, .help = "width"},
    {.path = "model.config_overrides.window_size", .type = KeyType::integer, .default_value = {}, .help = "window"},
    {.path = "model.config_overrides.qk_norm", .type = KeyType::boolean, .default_value = false, .help = "norm"},
    {.path = "training.learning_rate", .type = KeyType::number, .default_value = 1, .help = "peak"},
    {.path = "training.seed", .type = KeyType::integer, .default_value = 1, .help = "seed"},
    {.path = "data.seed", .type = KeyType::integer, .default_value = 2, .help = "order"},
    {.path = "data.path", .type = KeyType::string, .default_value = "here", .help = "folder"},
    {.path = "logging.wandb", .type = KeyType::string, .default_value = {}, .help = ""},
    {.path = "name", .type = KeyType::string, .default_value = {}, .help = "of the run"}};

ParsedConfig parse(const std::string& text, const Strings& overrides = {}) {
  return parse_config(text, "c.json", kKeys, overrides);
}

std::string error_for(const std::string& text, const Strings& overrides = {}) {
  return error_of([&] { parse(text, overrides); });
}

// A config with the required key and `rest`.
std::string with(const std::string& rest) { return R"({"model": {"architecture": "m"})" + rest + "}"; }

TEST_CASE("a config has every known key, given or by default", "[core][config]") {
  const ParsedConfig config = parse(with(R"(, "training": {"learning_rate": 3}, "name": null)"));
  CHECK(config.values == json::parse(R"({
    "model": {"architecture": "m", "config_overrides": {"hidden_size": 64, "window_size": null, "qk_norm": false}},
    "training": {"learning_rate": 3.0, "seed": 1}, "data": {"seed": 2, "path": "here"}, "name": null})"));
  CHECK(config.ignored.empty());
  CHECK(get<double>(config.values, "training.learning_rate") == 3.0);
  CHECK(value_at(config.values, "training.learning_rate").is_number_float());
  CHECK(get<std::string>(config.values, "model.architecture") == "m");
  CHECK(get_optional<std::int64_t>(config.values, "model.config_overrides.window_size") == std::nullopt);
  CHECK(get_optional<std::int64_t>(config.values, "model.config_overrides.hidden_size") == 64);
  CHECK(value_at(config.values, "no.such.path").is_null());
  CHECK(value_at(config.values, "name.deeper").is_null());
}

TEST_CASE("numbers may be written either way, other types may not", "[core][config]") {
  const auto hidden = [](const std::string& value) {
    return R"({"model": {"architecture": "m", "config_overrides": {"hidden_size": )" + value + "}}}";
  };
  CHECK(value_at(parse(hidden("5.0")).values, "model.config_overrides.hidden_size").dump() == "5");
  CHECK(value_at(parse(hidden("1e3")).values, "model.config_overrides.hidden_size").dump() == "1000");
  CHECK(value_at(parse(hidden("-7")).values, "model.config_overrides.hidden_size").dump() == "-7");
  for (const char* bad : {"5.5", "\"5\"", "true", "[5]", "1e19", "9223372036854775808", "null"}) {
    INFO(bad);
    CHECK(contains(error_for(hidden(bad)), "c.json: model.config_overrides.hidden_size: expected an integer, got "));
  }
  CHECK(error_for(with(R"(, "training": {"learning_rate": "1e-3"})")) ==
        R"(c.json: training.learning_rate: expected a number, got "1e-3")");
  CHECK(error_for(with(R"(, "name": 5)")) == "c.json: name: expected a string or null, got 5");
  CHECK(contains(error_for(with(R"(, "data": {"path": null})")), "data.path: expected a string, got null"));
  CHECK(contains(error_for(R"({"model": {"architecture": "m", "config_overrides": {"qk_norm": 1}}})"),
                 "expected true or false, got 1"));
}

TEST_CASE("an unknown key names the nearest known one", "[core][config]") {
  CHECK(error_for(with(R"(, "training": {"learning_rat": 1})")) ==
        R"(c.json: unknown key "training.learning_rat", did you mean "training.learning_rate"?)");
  CHECK(contains(error_for(with(R"(, "model_learning": 1)")), "unknown key \"model_learning\", did you mean"));
  CHECK(contains(error_for(with(R"(, "": 1)")), "unknown key \"\""));
  CHECK(contains(error_for(with(R"(, "training.seed": 1)")), "holds a dot; write nested objects"));
  CHECK(nearest_key("learning_rate", kKeys) == "training.learning_rate");
  CHECK(nearest_key("model.learning_rate", kKeys) == "training.learning_rate");
  CHECK(nearest_key("data.sead", kKeys) == "data.seed");
  CHECK(nearest_key("training.sead", kKeys) == "training.seed");
  CHECK(nearest_key("hiden_size", kKeys) == "model.config_overrides.hidden_size");
  CHECK(nearest_key("x", {}).empty());
  CHECK(!nearest_key(std::string(1'000'000, 'x'), kKeys).empty());
}

TEST_CASE("sections and values are not each other", "[core][config]") {
  CHECK(error_for(with(R"(, "training": 5)")) == "c.json: training: expected an object (a section), got 5");
  CHECK(contains(error_for(with(R"(, "training": null)")), "training: expected an object"));
  CHECK(error_for(with(R"(, "training": {"seed": {"x": 1}})")) ==
        R"(c.json: training.seed: expected an integer, got {"x":1})");
  CHECK(error_for("[]") == "c.json: expected an object, got []");
  CHECK(error_for("null") == "c.json: expected an object, got null");
}

TEST_CASE("required keys must be there", "[core][config]") {
  const std::string missing = "c.json: required key \"model.architecture\" is missing (which model)";
  CHECK(error_for("{}") == missing);
  CHECK(error_for(R"({"model": {}})") == missing);
  CHECK(contains(error_for(R"({"model": {"architecture": null}})"), "expected a string, got null"));
  CHECK(error_for("{}", {"model.architecture=m"}).empty());
}

TEST_CASE("keys without meaning may hold anything and are listed", "[core][config]") {
  const ParsedConfig config = parse(with(R"(, "logging": {"wandb": {"deep": [1]}})"));
  CHECK(config.ignored == Strings{"logging.wandb"});
  CHECK(value_at(config.values, "logging").is_null());
  CHECK(parse(with(""), {"wandb=x"}).ignored == Strings{"logging.wandb"});
}

TEST_CASE("the syntax is strict", "[core][config]") {
  CHECK(error_for("{\n\"training\": {\"seed\": 1,}}").starts_with("c.json:2:"));
  CHECK(contains(error_for(with(R"(, "data": {"seed": 1, "seed": 1})")), R"(duplicate key "data.seed")"));
  CHECK(contains(error_for(with(R"(, "model": {})")), R"(duplicate key "model")"));
  CHECK(!error_for(with("") + " x").empty());
  CHECK(!error_for("// comment\n" + with("")).empty());
  CHECK(contains(error_for("{\"name\":" + std::string(3'000'000, '[')), "nested more than"));
}

TEST_CASE("overrides take full paths and unique ends", "[core][config]") {
  const auto value = [](const std::string& assignment, const char* path) {
    return value_at(parse(with(R"(, "name": "run")"), {assignment}).values, path);
  };
  CHECK(value("training.learning_rate=1e-3", "training.learning_rate") == 1e-3);
  CHECK(value("learning_rate=2", "training.learning_rate") == 2.0);
  CHECK(value("hidden_size=128.0", "model.config_overrides.hidden_size") == 128);
  CHECK(value("config_overrides.hidden_size=9", "model.config_overrides.hidden_size") == 9);
  CHECK(value("window_size=null", "model.config_overrides.window_size").is_null());
  CHECK(value("name=null", "name").is_null());
  CHECK(value("name=two words=x", "name") == "two words=x");
  CHECK(value("name=\"quoted\"", "name") == "quoted");
  CHECK(value("path=2024", "data.path") == "2024");
  CHECK(value("path=1e3", "data.path") == "1e3");
  CHECK(value("path=true", "data.path") == "true");
  CHECK(value("path=", "data.path") == "");
  CHECK(value("qk_norm=true", "model.config_overrides.qk_norm") == true);
  CHECK(value_at(parse(with(""), {"training.seed=1", "training.seed=5"}).values, "training.seed") == 5);
}

TEST_CASE("bad overrides say what was meant", "[core][config]") {
  const auto message_for = [](const std::string& assignment) { return error_for(with(""), {assignment}); };
  CHECK(message_for("seed=3") == R"(--set seed=3: "seed" may mean training.seed or data.seed; write the full path)");
  CHECK(message_for("learning_rat=3") ==
        R"(--set learning_rat=3: unknown key "learning_rat", did you mean "training.learning_rate"?)");
  CHECK(contains(message_for("rate=3"), "unknown key \"rate\""));  // an end, but not from a dot on
  CHECK(contains(message_for("training=3"), "unknown key \"training\""));
  CHECK(contains(message_for("seed"), "expected KEY=VALUE"));
  CHECK(contains(message_for("=3"), "expected KEY=VALUE"));
  CHECK(message_for("learning_rate=fast") ==
        R"(--set learning_rate=fast: training.learning_rate: expected a number, got "fast")");
  CHECK(contains(message_for("learning_rate=null"), "expected a number, got null"));
  CHECK(contains(message_for("learning_rate={\"a\":1,\"a\":2}"), "expected a number"));
  CHECK(contains(message_for("learning_rate=" + std::string(1'000'000, '[')), "expected a number"));
  CHECK(contains(error_for(with(R"(, "training": 5)"), {"learning_rate=1"}), "training: expected an object"));
  json empty;
  apply_override(empty, "training.seed=4", kKeys);
  CHECK(empty == json::parse(R"({"training": {"seed": 4}})"));
}

TEST_CASE("a default of the wrong type is found", "[core][config]") {
  const KeyList keys{{.path = "a", .type = KeyType::integer, .default_value = "x", .help = "h"}};
  CHECK(contains(error_of([&] { parse_config("{}", "c", keys); }), "the default: a: expected an integer"));
}

TEST_CASE("a config file is loaded", "[core][config]") {
  const TemporaryFolder folder;
  write_file_atomically(folder / "c.json", with(""));
  CHECK(get<std::int64_t>(load_config(folder / "c.json", kKeys, {"data.seed=9"}).values, "data.seed") == 9);
  write_file_atomically(folder / "c.json", "{");
  CHECK(error_of([&] { load_config(folder / "c.json", kKeys); }).starts_with((folder / "c.json").string() + ":1:2: "));
  CHECK(contains(error_of([&] { load_config(folder / "none", kKeys); }), "No such file"));
}

}  // namespace
}  // namespace satformer
