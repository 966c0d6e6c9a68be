// `satformer verify`: the reference vectors in tests/data, those handed over beside the clone, and damaged cases.
#include "satformer/verify/verify.h"

#include <ATen/ATen.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "satformer/core/error.h"
#include "satformer/runtime/safetensors.h"

#include "tests/catch.h"
#include "tests/paths.h"

namespace satformer {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

fs::path golden() { return testing::test_data_dir() / "golden"; }

// A folder of its own, with a copy of the case to damage.
class DamagedCase {
 public:
  explicit DamagedCase(const std::string& name)
      : root_(fs::temp_directory_path() / ("satformer_verify_test_" + std::to_string(getpid()))),
        folder_(root_ / name) {
    fs::create_directories(root_);
    fs::copy(golden() / name, folder_);
    file_ = read_safetensors(golden() / name / "golden.safetensors");
  }
  ~DamagedCase() { fs::remove_all(root_); }

  const fs::path& root() const { return root_; }
  const fs::path& folder() const { return folder_; }
  Safetensors& file() { return file_; }

  verify::CaseResult run() {
    write_safetensors(folder_ / "golden.safetensors", file_.tensors, file_.metadata);
    return verify::run_cases({folder_}).cases.at(0);
  }

 private:
  fs::path root_, folder_;
  Safetensors file_;
};

const verify::Check& check_of(const verify::CaseResult& item, const std::string& kind) {
  for (const verify::Check& check : item.checks) {
    if (check.kind == kind) return check;
  }
  FAIL("no check of " << kind << " in " << item.name << ": " << item.failure);
  throw std::logic_error("unreachable");
}

}  // namespace

TEST_CASE("the reference vectors of the clone pass", "[train][verify]") {
  const verify::Report report = verify::run_cases({golden()});
  INFO(verify::format_table(report));
  CHECK(report.passed());
  const json result = verify::to_json(report);
  CHECK(result["passed"] == true);
  REQUIRE(result["cases"].size() == 3);
  CHECK(result["skipped"].empty());
  CHECK(result["cases"][0]["name"] == "resformer");
  CHECK(result["cases"][0]["errors"].size() == 4);
  for (const char* kind : {"logits", "loss", "intermediates"}) {
    CHECK(result["cases"][0]["errors"][kind].get<double>() <= 2e-5);
  }
  CHECK(result["cases"][0]["errors"]["gradients"].get<double>() <= 2e-4);
  CHECK(result["cases"][2]["name"] == "train_satformer");
  for (const char* kind : {"loss", "grad_norm", "final_parameters", "final_parameters_norm"}) {
    CHECK(result["cases"][2]["errors"][kind].is_number());
  }
}

TEST_CASE("the reference vectors beside the clone pass", "[train][verify]") {
  const fs::path folder = testing::shared_dir() / "golden";
  if (!fs::is_directory(folder)) {
    WARN("skipped: there are no reference vectors beside the clone");
    return;
  }
  const verify::Report report = verify::run_cases({folder});
  INFO(verify::format_table(report));
  CHECK(report.passed());
}

TEST_CASE("damaged reference vectors do not pass", "[train][verify]") {
  const std::string q_proj = "model.layers.1.attn.q_proj.weight";
  DamagedCase item("satformer_gqa");
  TensorMap& tensors = item.file().tensors;

  SECTION("a wrong logit") {
    tensors["logits"][1][3][7] += 1.0;
    const verify::CaseResult result = item.run();
    CHECK_FALSE(result.passed());
    CHECK(check_of(result, "logits").error > 1e-2);
    CHECK(check_of(result, "gradients").passed());
  }
  SECTION("a wrong gradient is named") {
    tensors["grad." + q_proj].mul_(1.001);
    const verify::CaseResult result = item.run();
    CHECK_FALSE(check_of(result, "gradients").passed());
    CHECK(check_of(result, "gradients").tensor == "grad." + q_proj);
    CHECK(check_of(result, "logits").passed());
  }
  SECTION("a wrong intermediate is named") {
    tensors["alpha.2"].add_(0.01);
    CHECK(check_of(item.run(), "intermediates").tensor == "alpha.2");
  }
  SECTION("a wrong parameter shows everywhere") {
    tensors["model.layers.1.attn.v_proj.weight"].mul_(1.1);
    const verify::CaseResult result = item.run();
    for (const char* kind : {"logits", "loss", "intermediates", "gradients"})
      CHECK_FALSE(check_of(result, kind).passed());
  }
  SECTION("not a number") {
    tensors[q_proj][0][0] = std::numeric_limits<double>::quiet_NaN();
    const verify::CaseResult result = item.run();
    CHECK_FALSE(result.passed());
    CHECK(std::isinf(check_of(result, "logits").error));
    const json written = verify::to_json({{result}});
    CHECK(written["passed"] == false);
    CHECK(written["cases"][0]["errors"]["logits"].is_null());
    CHECK(json::parse(written.dump()) == written);
  }
  SECTION("not a number in the reference alone") {
    tensors["logits"][0][0][0] = std::numeric_limits<double>::quiet_NaN();
    CHECK_FALSE(check_of(item.run(), "logits").passed());
  }
  SECTION("a missing parameter") {
    tensors.erase(q_proj);
    CHECK(item.run().failure.ends_with("golden.safetensors: tensor " + q_proj + " is missing"));
  }
  SECTION("a missing gradient") {
    tensors.erase("grad." + q_proj);
    CHECK(item.run().failure.ends_with("tensor grad." + q_proj + " is missing"));
  }
  SECTION("missing logits") {
    tensors.erase("logits");
    CHECK(item.run().failure.ends_with("tensor logits is missing"));
  }
  SECTION("a wrong shape") {
    tensors[q_proj] = at::ones({64, 63});
    CHECK(item.run().failure.ends_with("must be Float [64, 64], got Float [64, 63]"));
  }
  SECTION("a wrong dtype") {
    tensors[q_proj] = tensors[q_proj].to(at::kDouble);
    CHECK(item.run().failure.ends_with("must be Float [64, 64], got Double [64, 64]"));
  }
  SECTION("a wrong shape of a value") {
    tensors["hidden.0"] = tensors["hidden.0"].slice(1, 1).clone();
    CHECK(item.run().failure.find("hidden.0") != std::string::npos);
  }
  SECTION("a parameter too many") {
    tensors["lm_head.weight"] = at::ones({320, 64});
    CHECK(item.run().failure.find("tensor lm_head.weight is neither a parameter") != std::string::npos);
  }
  SECTION("an intermediate that this architecture has not") {
    tensors["dwa.0"] = at::ones({2});
    CHECK(item.run().failure.ends_with("this satformer has no intermediate dwa.0"));
  }
  SECTION("targets that are not shifted") {
    tensors["targets"] = tensors["labels"].clone();
    CHECK(item.run().failure.ends_with("targets are not labels shifted by one position"));
  }
  SECTION("ids beyond the vocabulary") {
    tensors["input_ids"][0][0] = 320;
    const verify::CaseResult result = item.run();
    CHECK_FALSE(result.failure.empty());
    CHECK(result.failure.find('\n') == std::string::npos);
  }
}

TEST_CASE("damaged training runs do not pass", "[train][verify]") {
  DamagedCase item("train_satformer");
  TensorMap& tensors = item.file().tensors;
  SECTION("a wrong loss") {
    tensors["loss"][7] *= 1.001;
    const verify::CaseResult result = item.run();
    CHECK_FALSE(check_of(result, "loss").passed());
    CHECK(check_of(result, "loss").tensor == "loss of step 7");
    CHECK(check_of(result, "grad_norm").passed());
  }
  SECTION("a wrong final parameter") {
    tensors["final.model.norm.weight"][3] += 0.01;
    const verify::CaseResult result = item.run();
    CHECK(check_of(result, "final_parameters").tensor == "final.model.norm.weight");
    CHECK_FALSE(check_of(result, "final_parameters").passed());
    CHECK_FALSE(check_of(result, "final_parameters_norm").passed());
  }
  SECTION("another learning rate") {
    tensors["lr"].mul_(1.01);
    CHECK_FALSE(check_of(item.run(), "final_parameters_norm").passed());
  }
  SECTION("weight decay on other tensors") {
    // One matrix that should decay does not.
    std::string& decayed = item.file().metadata["decayed"];
    decayed = decayed.substr(decayed.find(',') + 1);
    const verify::CaseResult result = item.run();
    CHECK_FALSE(check_of(result, "final_parameters_norm").passed());
    CHECK(check_of(result, "final_parameters_norm").tensor == "final.model.layers.0.attn.q_proj.weight");
  }
  SECTION("weight decay on an unknown tensor") {
    item.file().metadata["decayed"] += ",model.foo";
    CHECK(item.run().failure.find("names model.foo") != std::string::npos);
  }
  SECTION("no list of decayed tensors") {
    item.file().metadata.erase("decayed");
    CHECK(item.run().failure.ends_with("metadata decayed is missing"));
  }
  SECTION("the metadata's float64 disagreement of single entries") {
    const verify::CaseResult result = item.run();
    CHECK(check_of(result, "final_parameters").tolerance == Approx(10 * 2.24e-4 / 5.94e-2).epsilon(0.01));
    CHECK(check_of(result, "final_parameters_norm").tolerance == Approx(10 * 1.13e-4));
  }
  SECTION("a float64 disagreement raises the tolerance") {
    item.file().metadata["float64_agreement"] = "loss rel diff per step 1.0e-07 3.0e-03 2e-7; grad_norm rel diff";
    tensors["loss"][7] *= 1.001;
    const verify::CaseResult result = item.run();
    CHECK(check_of(result, "loss").tolerance == Approx(3e-2));
    CHECK(check_of(result, "loss").passed());
    CHECK(check_of(result, "grad_norm").tolerance == 5e-3);
    CHECK(check_of(result, "final_parameters").tolerance == 1e-3);
    CHECK(check_of(result, "final_parameters_norm").tolerance == 1e-3);
  }
}

TEST_CASE("folders that are no cases", "[train][verify]") {
  DamagedCase item("satformer_gqa");
  const auto write = [](const fs::path& path, const std::string& text) { std::ofstream(path) << text; };

  SECTION("a missing file") {
    fs::remove(item.folder() / "golden.safetensors");
    const verify::CaseResult result = verify::run_cases({item.folder()}).cases.at(0);
    CHECK(result.failure.find("golden.safetensors: missing") != std::string::npos);
  }
  SECTION("a broken configuration") {
    write(item.folder() / "config.json", "{");
    CHECK_FALSE(verify::run_cases({item.folder()}).passed());
  }
  SECTION("another architecture") {
    write(item.folder() / "config.json", R"({"model_type": "perceptron"})");
    CHECK_THROWS_WITH(verify::run_cases({item.folder()}), Catch::Contains("architecture perceptron not in this build"));
    const verify::Report alone = verify::run_cases({item.root()});
    CHECK_FALSE(alone.passed());  // nothing ran
    CHECK(verify::to_json(alone)["skipped"][0]["name"] == "satformer_gqa");
    const verify::Report both = verify::run_cases({item.root(), golden() / "resformer"});
    CHECK(both.passed());
    CHECK(verify::format_table(both).find("skipped (architecture perceptron not in this build)") != std::string::npos);
  }
  SECTION("nothing there") {
    CHECK_THROWS_WITH(verify::run_cases({item.root() / "none"}), Catch::Contains("no such folder"));
    fs::create_directory(item.root() / "empty");
    CHECK_THROWS_WITH(verify::run_cases({item.root() / "empty"}), Catch::Contains("nor a folder of cases"));
  }
  SECTION("one bad case does not hide the others") {
    fs::copy(golden() / "resformer", item.root() / "resformer");
    write(item.folder() / "golden.safetensors", "short");
    const verify::Report report = verify::run_cases({item.root()});
    REQUIRE(report.cases.size() == 2);
    CHECK(report.cases[0].passed());
    CHECK_FALSE(report.cases[1].passed());
    CHECK_FALSE(report.passed());
  }
}

}  // namespace satformer
