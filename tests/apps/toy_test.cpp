// What one file and one line in a list add to the program: a corpus format and a subcommand (tests/toy).
#include <nlohmann/json.hpp>

#include "satformer/io/files.h"
#include "tests/apps/child_process.h"
#include "tests/paths.h"
#include "tests/support/folders.h"
#include "tests/support/text.h"

#include "tests/catch.h"

namespace {

using namespace satformer;
using namespace satformer::testing;
using Catch::Matchers::Contains;

CommandResult toy(const std::vector<std::string>& arguments, const TemporaryFolder& folder) {
  return Command(CommandLine{toy_cli(), arguments, folder.path()}).wait();
}

nlohmann::json toy_json(std::vector<std::string> arguments, const TemporaryFolder& folder) {
  const std::filesystem::path path = folder / "result.json";
  arguments.insert(arguments.end(), {"--json", path.string()});
  const CommandResult result = toy(arguments, folder);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  return nlohmann::json::parse(read_file(path));
}

}  // namespace

TEST_CASE("a corpus format is prepared, documented and checked like the others", "[apps][toy]") {
  const TemporaryFolder folder;
  std::string fortunes;
  for (int i = 0; i < 300; ++i) fortunes += (i > 0 ? "%\n" : "") + made_up_lines(2, i);
  write_text(folder / "all.fortune", fortunes);
  const std::vector<std::string> prepare{"prepare",      "--input", folder / "all.fortune", "--output", folder / "out",
                                         "--vocab-size", "320",     "--overwrite"};
  CHECK(toy_json(prepare, folder).at("documents") == 300);

  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), prepare.begin(), prepare.end());
    return more;
  };
  CHECK(toy_json(with({"--document-per", "line", "--format", "text"}), folder).at("documents") == 300 * 2 + 299);
  CHECK_THAT(toy(with({"--separator", "=="}), folder).err, Contains("the input is one document"));
  CHECK_THAT(toy(with({"--format", "poem"}), folder).err, Contains("--format"));
  const std::string help = toy({"prepare", "--help"}, folder).out;
  CHECK_THAT(help, Contains("--separator") && Contains("Fortune: the line between documents"));
  CHECK_THAT(help, Contains("jsonl or text or fortune"));
}

TEST_CASE("a subcommand is listed, run and checked like the others", "[apps][toy]") {
  const TemporaryFolder folder;
  write_text(folder / "two.fortune", "one\n%\ntwo\nlines\n");
  CHECK(toy_json({"count", folder / "two.fortune"}, folder) == nlohmann::json{{"documents", 2}, {"bytes", 14}});
  CHECK_THAT(toy({"--help"}, folder).out, Contains("count") && Contains("Count the documents of text files"));
  CHECK_THAT(toy({"cuont"}, folder).err, Contains("expected one of prepare, train, ") && Contains("verify, count"));
  CHECK(toy({"count"}, folder).exit_code == 2);
  const CommandResult failed = toy({"count", folder / "absent.txt"}, folder);
  CHECK(failed.exit_code == 1);
  CHECK_THAT(failed.err, Contains("absent.txt: no such file"));
  CHECK_THAT(run_command({"count"}, folder.path()).err, Contains("unknown command count"));  // in the toy alone
}
