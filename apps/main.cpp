// The command-line program: all commands, and how every failure ends.
//   exit 0: success    1: a failure, one line `satformer: error: MESSAGE` on standard error    2: wrong usage
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "apps/commands.h"
#include "apps/failure.h"
#include "apps/options.h"
#include "satformer/runtime/host_memory.h"
#include "satformer/runtime/version.h"

namespace satformer::apps {
namespace {

constexpr int kFailure = 1;
constexpr int kWrongUsage = 2;

using AddCommand = void (*)(CLI::App&);
constexpr AddCommand kCommands[] = {
#define COMMAND(NAME) add_##NAME,
#include "apps/commands.inc"
#undef COMMAND
};

int report(std::string_view message, int code) {
  print_error(message);
  return code;
}

int wrong_usage(const CLI::App& app, const std::string& message) {
  const auto commands = app.get_subcommands();
  report(message, kWrongUsage);
  fmt::print(stderr, "Run satformer {}--help for the usage.\n",
             commands.empty() ? "" : commands.front()->get_name() + " ");
  return kWrongUsage;
}

std::string command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

int parse_and_run(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    if (!app.get_subcommands().empty()) return 0;
    return wrong_usage(app, "a command is required: " + command_names(app));
  } catch (const CLI::ExtrasError& error) {
    if (!app.get_subcommands().empty()) return wrong_usage(app, error.what());
    return wrong_usage(app, fmt::format("unknown command {}, expected one of {}", argv[1], command_names(app)));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(error);
    return wrong_usage(app, error.what());
  } catch (const std::invalid_argument& error) {
    return wrong_usage(app, error.what());
  } catch (...) {
    return report(error_message(std::current_exception()), kFailure);
  }
}

int run(int argc, char** argv) {
  CLI::App app("Trains, evaluates and dissects language models with selective access to early representations.",
               "satformer");
  app.require_subcommand(0, 1);  // none is answered below, where an unknown word can be told from a missing one
  app.set_version_flag("--version", version_text, "Versions of satformer, LibTorch, CUDA and the compiler");
  for (const auto add_command : kCommands) add_command(app);
  return parse_and_run(app, argc, argv);
}

}  // namespace
}  // namespace satformer::apps

int main(int argc, char** argv) {
  satformer::apps::prepare_for_failure();
  try {
    satformer::use_host_memory();
    std::signal(SIGXFSZ, SIG_IGN);  // a file that grows beyond its limit is an error of write, not the end
    return satformer::apps::run(argc, argv);
  } catch (...) {
    std::terminate();  // out of memory while flags were set up or an error was put into words: failure.h prints it
  }
}
