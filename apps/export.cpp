// satformer export: a checkpoint in a format that other programs read.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "apps/commands.h"
#include "apps/options.h"
#include "satformer/checkpoint/layout.h"
#include "satformer/checkpoint/load.h"
#include "satformer/core/error.h"
#include "satformer/exchange/torchscript.h"
#include "satformer/io/files.h"
#include "satformer/runtime/version.h"

namespace satformer::apps {
namespace {

struct ExportFlags {
  std::string checkpoint, format, output, json;
  bool overwrite = false;
};

// What a reader of the file may ask for by name.
exchange::ExtraFiles extra_files(const std::filesystem::path& checkpoint) {
  exchange::ExtraFiles files{{"satformer_version", version()}};
  for (const char* name : {checkpoint::kConfigFile, checkpoint::kTokenizerFile}) {
    if (std::filesystem::exists(checkpoint / name)) files[name] = read_file(checkpoint / name);
  }
  return files;
}

// Nothing is lost to a wrong path.
void check_file_output(const std::filesystem::path& output, bool overwrite) {
  namespace fs = std::filesystem;
  const fs::path target = fs::weakly_canonical(output);  // where a link points
  require(!fs::exists(target.parent_path() / checkpoint::kManifestFile),
          "--output {}: lies in a checkpoint; give another folder", output.string());
  require(!fs::is_directory(target), "--output {}: is a folder; give a file's name", output.string());
  const bool regular = !fs::exists(target) || fs::is_regular_file(target);
  require(!regular || overwrite || !fs::exists(fs::symlink_status(output)),
          "--output {}: exists; give another name or --overwrite", output.string());
}

void export_command(const ExportFlags& flags) {
  check_file_output(flags.output, flags.overwrite);
  require(flags.json.empty() ||
              std::filesystem::weakly_canonical(flags.json) != std::filesystem::weakly_canonical(flags.output),
          "--json {}: is --output as well", flags.json);
  const std::filesystem::path checkpoint = checkpoint::find(flags.checkpoint);
  const auto model = checkpoint::load_model(checkpoint);
  const exchange::TorchScriptExport result =
      exchange::export_torchscript(*model, flags.output, extra_files(checkpoint));
  fmt::print("{}: {}, {} parameters, methods {}\n", flags.output, model->config().architecture, model->num_parameters(),
             fmt::join(result.methods, ", "));
  std::printf("logits differ from the model's by %.1e of the largest\n", result.difference);
  write_json_result(flags.json, {{"format", flags.format},
                                 {"output", flags.output},
                                 {"checkpoint", checkpoint.string()},
                                 {"architecture", model->config().architecture},
                                 {"parameters", model->num_parameters()},
                                 {"methods", result.methods},
                                 {"difference", result.difference}});
}

}  // namespace

void add_export(CLI::App& app) {
  const auto flags = std::make_shared<ExportFlags>();
  CLI::App* command = app.add_subcommand("export", "Write a checkpoint in a format that other programs read");
  add_checkpoint_option(*command, flags->checkpoint);
  command->add_option("--format", flags->format, "torchscript: one file for LibTorch in C++ and Python")
      ->check(CLI::IsMember({"torchscript"}))
      ->required();
  command->add_option("--output", flags->output, "The file to write")->type_name("FILE")->required();
  command->add_flag("--overwrite", flags->overwrite, "Replace an existing file");
  add_json_option(*command, flags->json);
  command->callback([flags] { export_command(*flags); });
}

}  // namespace satformer::apps
