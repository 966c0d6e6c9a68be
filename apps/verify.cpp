// satformer verify: compares this implementation with reference vectors.
#include <cstdio>
#include <memory>
#include <vector>

#include "apps/commands.h"
#include "satformer/core/error.h"
#include "satformer/verify/verify.h"

namespace satformer::apps {
namespace {

struct VerifyFlags {
  std::vector<std::string> folders;
  std::string json;
};

void run_verify(const VerifyFlags& flags) {
  const verify::Report report = verify::run_cases({flags.folders.begin(), flags.folders.end()});
  std::fputs(verify::format_table(report).c_str(), stdout);
  write_json_result(flags.json, verify::to_json(report));
  std::size_t ran = 0, failed = 0;
  for (const verify::CaseResult& item : report.cases) {
    if (!item.skipped.empty()) continue;
    ++ran;
    if (!item.passed()) ++failed;
  }
  require(ran > 0, "no case was run: all {} were skipped", report.cases.size());
  require(failed == 0, "{} of {} cases failed", failed, ran);
  fmt::print("{} cases passed, {} skipped\n", ran, report.cases.size() - ran);
}

}  // namespace

void add_verify(CLI::App& app) {
  const auto flags = std::make_shared<VerifyFlags>();
  CLI::App* command = app.add_subcommand("verify", "Compare this implementation with reference vectors");
  command->add_option("DIR", flags->folders, "A case (config.json, golden.safetensors), or a folder of cases")
      ->required();
  add_json_option(*command, flags->json);
  command->callback([flags] { run_verify(*flags); });
}

}  // namespace satformer::apps
