// satformer bench through the executable: its JSON and its errors. Nothing here depends on how fast anything is.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "satformer/io/files.h"
#include "tests/apps/child_process.h"
#include "tests/paths.h"
#include "tests/support/folders.h"

// After torch.
#include "tests/catch.h"

namespace {

using namespace satformer;
using namespace satformer::testing;
using Catch::Matchers::Contains;

const std::vector<std::string> kTinyModel = {"--set",     "vocab_size=97",
                                             "--set",     "hidden_size=32",
                                             "--set",     "num_hidden_layers=3",
                                             "--set",     "num_heads=4",
                                             "--set",     "num_kv_heads=2",
                                             "--set",     "intermediate_size=48",
                                             "--batch",   "2",
                                             "--seq",     "16",
                                             "--threads", "1",
                                             "--device",  "cpu",
                                             "--dtype",   "float32"};

CommandResult bench(std::vector<std::string> arguments, const TemporaryFolder& folder) {
  arguments.insert(arguments.begin(), "bench");
  arguments.insert(arguments.begin() + 1, kTinyModel.begin(), kTinyModel.end());
  return run_command(arguments, folder.path());
}

nlohmann::json bench_json(std::vector<std::string> arguments, const TemporaryFolder& folder) {
  const auto path = folder.path() / "result.json";
  arguments.insert(arguments.end(), {"--json", path.string()});
  const CommandResult result = bench(arguments, folder);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  return nlohmann::json::parse(read_file(path));
}

void check_summary(const nlohmann::json& summary) {
  CHECK(summary.at("min").get<double>() > 0.0);
  CHECK(summary.at("min") <= summary.at("median"));
  CHECK(summary.at("median") <= summary.at("max"));
}

// The median of two rounds' ratios.
double ratio_of_rounds(const nlohmann::json& entry, const nlohmann::json& base) {
  const auto a = entry.at("tokens_per_second_by_round").get<std::vector<double>>();
  const auto b = base.at("tokens_per_second_by_round").get<std::vector<double>>();
  return (a.at(0) / b.at(0) + a.at(1) / b.at(1)) / 2;
}

}  // namespace

TEST_CASE("bench compares the architectures and writes what it measured", "[apps][bench]") {
  const TemporaryFolder folder;
  // In any spelling and order; reported in the order of the list.
  const nlohmann::json result = bench_json({"--architectures", "SATFormer,transformer", "--rounds", "2"}, folder);
  const nlohmann::json& architectures = result.at("architectures");
  REQUIRE(architectures.size() == 2);
  for (const auto& [name, entry] : architectures.items()) {
    INFO(name);
    check_summary(entry.at("tokens_per_second"));
    CHECK(entry.at("tokens_per_second_by_round").size() == 2);
    CHECK(entry.at("ratio_to_transformer").get<double>() ==
          Approx(ratio_of_rounds(entry, architectures.at("transformer"))));
    CHECK(entry.at("bound_fraction").get<double>() == Approx(ratio_of_rounds(entry, result.at("bound"))));
    check_summary(entry.at("ratio_to_transformer_by_round"));
    check_summary(entry.at("bound_fraction_by_round"));
    CHECK(entry.at("memory_growth_bytes") > 0);
    CHECK(entry.at("memory_growth_bytes") < entry.at("peak_memory_bytes"));
    double parts = 0.0;
    for (const char* part : {"matrix_products", "attention", "fused_passes", "optimizer", "other"}) {
      CHECK(entry.at("seconds_by_part").at(part).get<double>() >= 0.0);
      parts += entry.at("seconds_by_part").at(part).get<double>();
    }
    CHECK(parts == Approx(entry.at("profiled_step_seconds").get<double>()));
    for (const char* part : {"matrix_products", "attention", "optimizer"}) {
      CHECK(entry.at("seconds_by_part").at(part).get<double>() > 0.0);
    }
  }
  // The gates of two of three layers: H_kv d each.
  CHECK(architectures.at("satformer").at("num_parameters").get<std::int64_t>() ==
        architectures.at("transformer").at("num_parameters").get<std::int64_t>() + std::int64_t{2} * 2 * 32);
  CHECK(architectures.at("transformer").at("ratio_to_transformer") == 1.0);
  CHECK(result.at("settings").at("threads") == 1);
  CHECK(result.at("settings").at("dtype") == "float32");
  CHECK(result.at("models").at("transformer").at("hidden_size") == 32);
  check_summary(result.at("matrix_product").at("flops_per_second"));
}

TEST_CASE("bench without the transformer has no ratio to it", "[apps][bench]") {
  const TemporaryFolder folder;
  const nlohmann::json result = bench_json({"--architectures", "resformer", "--rounds", "1"}, folder);
  const nlohmann::json& entry = result.at("architectures").at("resformer");
  CHECK(entry.at("ratio_to_transformer").is_null());
  CHECK(entry.at("bound_fraction").get<double>() > 0.0);
}

TEST_CASE("bench names what it does not know, and the nearest that it does", "[apps][bench]") {
  const TemporaryFolder folder;
  const auto wrong = [&](const std::vector<std::string>& arguments, const std::string& text) {
    const CommandResult result = bench(arguments, folder);
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    CHECK_THAT(result.err, Contains(text));
  };
  wrong({"--architectures", "transformer,resfromer"},
        "unknown architecture \"resfromer\", did you mean \"resformer\"?");
  wrong({"--size", "smal"}, "unknown size \"smal\" of transformer, did you mean \"small\"?");
  wrong({"--set", "hiden_size=64"}, "unknown key \"hiden_size\", did you mean \"hidden_size\"?");
  wrong({"--set", "hidden_size"}, "expected KEY=VALUE");
  wrong({"--set", "num_kv_heads=3"}, "num_kv_heads must divide num_heads 4, got 3");
  wrong({"--dtype", "float16"}, "--dtype");
  wrong({"--rounds", "0"}, "--rounds");
  wrong({"--nproc", "2"}, "1 threads cannot be shared by 2 ranks");
  wrong({"--nproc", "3"}, "--batch 2 has no sequence for each of 3 ranks");
  wrong({"--config-dir", folder.path().string()}, "has no folder transformer");

  std::filesystem::create_directories(folder.path() / "transformer");
  wrong({"--config-dir", folder.path().string()}, "holds no .json file");
}

TEST_CASE("bench refuses to compare models with different trunks", "[apps][bench]") {
  const TemporaryFolder folder;
  for (const auto& [name, layers] : {std::pair("transformer", "3"), std::pair("resformer", "4")}) {
    std::filesystem::create_directories(folder.path() / name);
    std::ofstream(folder.path() / name / "small.json")
        << R"({"model": {"config_overrides": {"hidden_size": 32, "num_heads": 2, "num_hidden_layers": )" << layers
        << "}}}";
  }
  const CommandResult result = run_command(
      {"bench", "--config-dir", folder.path().string(), "--architectures", "transformer,resformer", "--device", "cpu"},
      folder.path());
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.err, Contains("a comparison needs the same trunk") && Contains("num_hidden_layers 4"));
}

TEST_CASE("bench --nproc compares one rank with several", "[apps][bench][distributed]") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "scaling.json";
  std::vector<std::string> arguments = {"bench", "--architectures", "satformer",  "--nproc", "2", "--rounds",
                                        "3",     "--json",          path.string()};
  arguments.insert(arguments.end(), kTinyModel.begin(), kTinyModel.end());
  *std::next(std::find(arguments.begin(), arguments.end(), "--threads")) = "2";
  const CommandResult result = run_command(arguments, folder.path());
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const auto scaling = nlohmann::json::parse(read_file(path));
  CHECK(scaling.at("ranks") == 2);
  CHECK(scaling.at("settings").at("threads") == 2);
  const auto& entry = scaling.at("architectures").at("satformer");
  check_summary(entry.at("tokens_per_second_1"));
  check_summary(entry.at("tokens_per_second_n"));
  auto rounds = entry.at("efficiency_by_round").get<std::vector<double>>();
  REQUIRE(rounds.size() == 3);
  std::sort(rounds.begin(), rounds.end());
  CHECK(entry.at("efficiency").get<double>() == Approx(rounds[1]));
}

TEST_CASE("bench --against measures this build and another one in turn", "[apps][bench]") {
  const TemporaryFolder folder;
  const auto result =
      bench_json({"--architectures", "transformer,satformer", "--against", cli().string(), "--rounds", "3"}, folder);
  CHECK(result.at("other").at("executable") == cli().string());
  CHECK(result.at("other").at("satformer") == result.at("satformer"));
  CHECK(result.at("settings").at("rounds") == 3);
  REQUIRE(result.at("architectures").size() == 2);
  for (const auto& [name, entry] : result.at("architectures").items()) {
    INFO(name);
    CHECK(entry.at("first_by_round") == nlohmann::json{"ours", "other", "ours"});
    std::vector<double> ratios;
    for (const char* build : {"ours", "other"}) {
      const nlohmann::json& measured = entry.at(build);
      check_summary(measured.at("tokens_per_second"));
      CHECK(measured.at("num_parameters") == entry.at("ours").at("num_parameters"));
      CHECK(measured.at("memory_growth_bytes") > 0);
      CHECK(measured.at("memory_growth_bytes") < measured.at("peak_memory_bytes"));
      CHECK(measured.at("seconds_by_part").at("matrix_products") > 0.0);
    }
    const auto ours = entry.at("ours").at("tokens_per_second_by_round").get<std::vector<double>>();
    const auto other = entry.at("other").at("tokens_per_second_by_round").get<std::vector<double>>();
    for (std::size_t round = 0; round < 3; ++round) ratios.push_back(ours.at(round) / other.at(round));
    CHECK(entry.at("ratio_by_round") == ratios);
    std::sort(ratios.begin(), ratios.end());
    CHECK(entry.at("ratio") == ratios[1]);
    CHECK(entry.at("ratio_quartiles").at(0) <= entry.at("ratio"));
    CHECK(entry.at("ratio_quartiles").at(1) >= entry.at("ratio"));
    CHECK(entry.at("peak_memory_ratio") == Approx(entry.at("ours").at("peak_memory_bytes").get<double>() /
                                                  entry.at("other").at("peak_memory_bytes").get<double>()));
  }
}

TEST_CASE("bench --against refuses what it cannot measure, before it measures", "[apps][bench]") {
  const TemporaryFolder folder;
  const auto script = [&](const std::string& name, const std::string& text) {
    write_text(folder / name, "#!/bin/sh\n" + text + "\n");
    std::filesystem::permissions(folder / name, std::filesystem::perms::owner_all);
    return (folder / name).string();
  };
  const auto error_against = [&](const std::string& executable, int exit_code = 2) {
    const CommandResult result = bench({"--architectures", "transformer", "--against", executable}, folder);
    CHECK(result.exit_code == exit_code);
    CHECK(result.out.empty());
    return result.err;
  };
  CHECK_THAT(error_against((folder / "absent").string()), Contains("--against: ") && Contains("no such file"));
  CHECK_THAT(error_against(folder.path().string()), Contains("is not executable"));
  write_text(folder / "text", "satformer");
  CHECK_THAT(error_against((folder / "text").string()), Contains("is not executable"));
  CHECK_THAT(error_against(script("silent", "exit 0")),
             Contains("no satformer: ") && Contains("silent: its process ended with exit code 0"));
  CHECK_THAT(error_against(script("other", "echo other 3.1")),
             Contains("is no satformer: --version answers \"other 3.1\""));
  const std::string version = "if [ \"$1\" = --version ]; then echo satformer 0.0.1; exit; fi; ";
  CHECK_THAT(error_against(script("old", version + "echo 'unknown command bench' >&2; exit 2")),
             Contains("is satformer 0.0.1, whose `bench --worker` this build cannot speak with: ") &&
                 Contains("unknown command bench"));
  CHECK_THAT(error_against(script("garbled", version + "echo no JSON; sleep 60")), Contains("cannot speak with"));
  // It speaks the protocol, but knows no such architecture: found out before the first round.
  CHECK_THAT(error_against(script("narrow", version + "read line; echo '{\"error\": \"no such model\"}'"), 1),
             Contains("transformer of ") && Contains("narrow: no such model"));
  CHECK_THAT(bench({"--against", cli().string(), "--nproc", "2"}, folder).err, Contains("--nproc"));
}
