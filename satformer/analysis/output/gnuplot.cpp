#include "satformer/analysis/output/gnuplot.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string_view>
#include <utility>

#include "satformer/core/error.h"
#include "satformer/core/progress.h"
#include "satformer/io/files.h"

namespace satformer::analysis {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStyle =
    "set encoding utf8\n"
    "set datafile missing 'NaN'\n"
    "set border 3 lc rgb '#444444' lw 0.8\n"
    "set tics nomirror out scale 0.5\n"
    "set grid ytics lc rgb '#dddddd' lw 0.6 back\n";
constexpr std::string_view kSvg = "svg size 720,430 noenhanced font 'DejaVu Sans,11' linewidth 1.2";
constexpr std::string_view kPng =
    "pngcairo size 1440,860 noenhanced font 'DejaVu Sans,11' fontscale 2 linewidth 2 background '#ffffff' rounded";

// One run of gnuplot draws everything; it works inside the folder, so that no path needs quoting in its commands.
std::string all_commands(const std::vector<Plot>& plots) {
  std::string commands;
  for (const Plot& plot : plots) {
    for (const auto& [extension, terminal] : {std::pair{"svg", kSvg}, std::pair{"png", kPng}}) {
      commands += fmt::format("reset session\nset terminal {}\nset output '{}.{}'\n{}{}unset output\n", terminal,
                              plot.name, extension, kStyle, plot.script);
    }
  }
  return commands;
}

// Starts gnuplot in a folder, with its standard error in the file ERRORS there; -1: it could not be started.
int run_gnuplot(const char* argument, const fs::path& folder, const char* errors) {
  std::string program = "gnuplot", settings = "--default-settings", last = argument;
  char* arguments[] = {program.data(), settings.data(), last.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errors, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  pid_t pid = -1;
  const int failure = posix_spawnp(&pid, program.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = -1;
  if (failure != 0 || waitpid(pid, &status, 0) != pid) return -1;
  return status;
}

}  // namespace

bool have_gnuplot() { return run_gnuplot("--version", "/", "/dev/null") == 0; }

void draw(const std::vector<Plot>& plots, const fs::path& folder) {
  const fs::path script = folder / "plots.gnuplot", errors = folder / "plots.errors";
  write_file_atomically(script, all_commands(plots));
  const int status = run_gnuplot(script.filename().c_str(), folder, errors.filename().c_str());
  std::string words = fs::exists(errors) ? read_file(errors) : "";
  fs::remove(errors);
  for (const Plot& plot : plots) {
    for (const char* extension : {".svg", ".png"}) {
      const bool drawn = fs::exists(folder / (plot.name + extension));
      for (char& c : words) c = c == '\n' ? ' ' : c;
      require(status == 0 && drawn, "gnuplot could not draw {}{}: {}", plot.name, extension,
              words.empty() ? "no reason given" : words);
    }
  }
  fs::remove(script);
}

bool draw_if_possible(const std::vector<Plot>& plots, const fs::path& folder) {
  if (!have_gnuplot()) {
    warn("gnuplot was not found: no plots (Debian: apt install gnuplot-nox fontconfig fonts-dejavu-core)");
    return false;
  }
  fs::create_directory(folder / "plots");
  draw(plots, folder / "plots");
  return true;
}

}  // namespace satformer::analysis
