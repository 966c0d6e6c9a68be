#include "satformer/bench/settings.h"

#include <algorithm>
#include <iterator>
#include <system_error>

#include "satformer/config/config.h"
#include "satformer/core/error.h"
#include "satformer/io/files.h"
#include "satformer/io/strict_json.h"
#include "satformer/models/architectures.h"
#include "satformer/models/model_keys.h"

namespace satformer::bench {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::uint64_t kMaxConfigBytes = 1 << 20;

std::string nearest(const std::string& name, const std::vector<std::string>& known) {
  KeyList keys;
  for (const std::string& word : known) keys.emplace_back().path = word;
  return nearest_key(name, keys);
}

// Our names of the chosen architectures, each once, in the order of the list.
std::vector<std::string> chosen_architectures(const std::vector<std::string>& wanted) {
  std::vector<std::string> all, chosen;
  for (const models::Architecture& architecture : models::architectures()) all.push_back(architecture.name);
  for (const std::string& word : wanted) {
    if (word == "all") return all;
    const models::Architecture* found = models::find_architecture(word);
    require(found != nullptr, "--architectures: unknown architecture {}, did you mean \"{}\"?", in_quotes(word),
            nearest(word, all));
    chosen.push_back(found->name);
  }
  require(!chosen.empty(), "--architectures: expected all or a list of names, got none");
  std::erase_if(all,
                [&](const std::string& name) { return std::find(chosen.begin(), chosen.end(), name) == chosen.end(); });
  return all;
}

fs::path config_path(const fs::path& config_dir, const std::string& architecture, const std::string& size) {
  const fs::path folder = config_dir / architecture;
  require(fs::is_directory(folder), "--config-dir: {} has no folder {}", config_dir.string(), architecture);
  std::vector<std::string> sizes;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") sizes.push_back(entry.path().stem().string());
  }
  require(!sizes.empty(), "--config-dir: {} holds no .json file", folder.string());
  std::sort(sizes.begin(), sizes.end());
  require(std::find(sizes.begin(), sizes.end(), size) != sizes.end(),
          "--size: unknown size {} of {}, did you mean \"{}\"?", in_quotes(size), architecture, nearest(size, sizes));
  return folder / (size + ".json");
}

bool is_of_training(const std::string& assignment) { return assignment.starts_with("training."); }

// The model section of a run's configuration, flat, with the overrides.
json model_section(const fs::path& path, const BenchSettings& settings) {
  const json file = parse_strict_json(read_file(path, kMaxConfigBytes), path.string());
  json model = value_at(file, "model.config_overrides");
  require(model.is_object(), "{}: model.config_overrides: expected an object, got {}", path.string(), shortened(model));
  for (const std::string& assignment : settings.overrides) {
    if (!is_of_training(assignment)) apply_override(model, assignment, models::model_keys());
  }
  json& longest = model["max_position_embeddings"];
  longest = std::max(longest.is_number_integer() ? longest.get<std::int64_t>() : 0, settings.seq_length);
  return model;
}

json run_config(const std::string& architecture, const fs::path& path, const BenchSettings& settings) {
  constexpr double kLearningRate = 1e-4;  // small enough that no architecture diverges on random tokens
  json config{{"model", {{"architecture", architecture}, {"config_overrides", model_section(path, settings)}}},
              {"data", {{"seq_length", settings.seq_length}}},
              {"training",
               {{"batch_size", settings.batch},
                {"gradient_accumulation_steps", 1},
                {"learning_rate", kLearningRate},
                {"min_lr", kLearningRate},
                {"lr_decay_style", "constant"},
                {"warmup_steps", 0},
                {"max_steps", std::int64_t{1} << 40},
                {"weight_decay", 0.1},
                {"grad_clip", 1.0},
                {"dtype", settings.dtype}}},
              {"system", {{"seed", 42}, {"device", settings.device}, {"threads", settings.threads}}}};
  for (const std::string& assignment : settings.overrides) {
    if (is_of_training(assignment)) apply_override(config, assignment, train::run_config_keys());
  }
  return config;
}

}  // namespace

fs::path find_config_dir() {
  const fs::path executable = fs::read_symlink("/proc/self/exe");
  for (fs::path folder = executable.parent_path(); folder != folder.root_path(); folder = folder.parent_path()) {
    for (const char* place : {"share/satformer/configs", "configs"}) {
      std::error_code ignored;  // a folder that may not be read is not ours
      if (fs::is_directory(folder / place / "transformer", ignored)) return folder / place;
    }
  }
  fail("no configs folder beside {} or its parent folders; name it with --config-dir", executable.string());
}

BenchPlan make_plan(const BenchSettings& settings) {
  BenchPlan plan{.settings = settings, .configs = {}, .given = {}, .trunk = {}};
  require(settings.batch >= settings.ranks, "--batch {} has no sequence for each of {} ranks", settings.batch,
          settings.ranks);
  require(settings.device.starts_with("cuda") || settings.threads % settings.ranks == 0,
          "{} threads cannot be shared by {} ranks; give --threads a multiple of --nproc", settings.threads,
          settings.ranks);
  if (plan.settings.config_dir.empty()) plan.settings.config_dir = find_config_dir();
  for (const std::string& name : chosen_architectures(settings.architectures)) {
    const fs::path path = config_path(plan.settings.config_dir, name, settings.size);
    plan.given.push_back(run_config(name, path, settings));
    plan.configs.push_back(train::parse_run_config(plan.given.back().dump(), path.string()));
    const Trunk trunk = trunk_of(plan.configs.back().model);
    if (plan.configs.size() == 1) plan.trunk = trunk;
    require(trunk == plan.trunk, "a comparison needs the same trunk: {} has {}; {} has {}; use --set",
            plan.configs.front().model.architecture, describe(plan.trunk), name, describe(trunk));
  }
  return plan;
}

json to_json(const BenchSettings& settings) {
  return {{"size", settings.size},       {"set", settings.overrides}, {"batch", settings.batch},
          {"seq", settings.seq_length},  {"dtype", settings.dtype},   {"device", settings.device},
          {"threads", settings.threads}, {"rounds", settings.rounds}, {"steps_per_round", settings.steps_per_round}};
}

std::string describe(const BenchSettings& settings) {
  return fmt::format("{} x {} tokens a step, {}, {}, CPU threads {}; rounds {}, steps a round {}", settings.batch,
                     settings.seq_length, settings.dtype, settings.device, settings.threads, settings.rounds,
                     settings.steps_per_round);
}

}  // namespace satformer::bench
