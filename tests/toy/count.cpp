// A subcommand of the tests, `count`: how many documents and bytes of text files hold. What is here and a line in
// commands.inc is all that a subcommand needs: docs/adding_a_subcommand.md.
#include <fmt/format.h>

#include <cstdint>
#include <memory>

#include "apps/commands.h"
#include "satformer/data/corpus.h"

namespace satformer::apps {
namespace {

struct CountFlags {
  std::vector<std::string> files;
  std::string json;
};

class Counter : public data::DocumentSink {
 public:
  void text(std::string_view part) override { bytes += static_cast<std::int64_t>(part.size()); }
  void end_document() override { ++documents; }

  std::int64_t documents = 0, bytes = 0;
};

void count_command(const CountFlags& flags) {
  Counter counter;
  for (const std::string& file : flags.files) data::read_corpus(file, {}, counter, [](std::uint64_t) {});
  fmt::print("{} documents, {} bytes\n", counter.documents, counter.bytes);
  write_json_result(flags.json, {{"documents", counter.documents}, {"bytes", counter.bytes}});
}

}  // namespace

void add_count(CLI::App& app) {
  const auto flags = std::make_shared<CountFlags>();
  CLI::App* command = app.add_subcommand("count", "Count the documents of text files");
  command->add_option("FILE", flags->files, "Files of any corpus format")->required();
  add_json_option(*command, flags->json);
  command->callback([flags] { count_command(*flags); });
}

}  // namespace satformer::apps
