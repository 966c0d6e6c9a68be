// Ranks as processes: what they compute together, and how they end when one of them fails.
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "satformer/distributed/world.h"
#include "tests/satformer/distributed/scenarios.h"

// After torch.
#include "tests/catch.h"

namespace {

using namespace satformer::testing;
using Catch::Matchers::Contains;

void require_success(const std::string& scenario, int size) {
  const std::vector<CommandResult> results = run_ranks(scenario, size);
  for (std::size_t rank = 0; rank < results.size(); ++rank) {
    INFO(scenario << ", rank " << rank << "\n" << results[rank].out << results[rank].err);
    CHECK(results[rank].exit_code == 0);
  }
}

// All ranks but those that fail end by themselves, soon, each with one line.
std::vector<CommandResult> run_failing(const std::string& scenario, int size = 3) {
  std::vector<CommandResult> results = run_ranks(scenario, size, 3 * kScenarioTimeoutSeconds);
  for (const CommandResult& result : results) UNSCOPED_INFO(result.exit_code << " " << result.err);
  return results;
}

void require_one_line(const CommandResult& result, int exit_code, const std::string& text) {
  INFO(result.err);
  CHECK(result.exit_code == exit_code);
  CHECK_THAT(result.err, Contains(text));
  CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
}

}  // namespace

TEST_CASE("a world of one rank needs no network", "[distributed]") {
  satformer::distributed::World world;
  CHECK(world.size() == 1);
  CHECK(world.is_rank_zero());
  const at::Tensor value = at::full({2}, 3.0);
  world.all_reduce(value, "an all-reduce");
  world.broadcast(value, 0, "a broadcast");
  CHECK(at::equal(value, at::full({2}, 3.0)));
  CHECK(world.all_gather(value, "a gathering").sizes() == at::IntArrayRef({1, 2}));
  CHECK(world.all_gather_text("x", "texts") == std::vector<std::string>{"x"});
  world.shutdown();
}

TEST_CASE("collectives of 2, 3 and 4 ranks", "[distributed]") {
  for (const int size : {2, 3, 4}) require_success("collectives", size);
}

TEST_CASE("parts of a list of tensors are gathered and broadcast", "[distributed]") {
  for (const int size : {2, 3}) require_success("parts", size);
}

TEST_CASE("summed gradients are those of one process, however rows and buckets fall", "[distributed]") {
  require_success("gradients", 3);
  require_success("overlap", 2);
}

TEST_CASE("a rank that differs is named on all ranks, with what differs", "[distributed]") {
  for (const CommandResult& result : run_failing("differing_facts")) {
    CHECK_THAT(result.err,
               Contains("rank 1 differs from rank 0 in its configuration: training.batch_size 9, expected 8"));
  }
  for (const CommandResult& result : run_failing("differing_tensors")) {
    CHECK_THAT(result.err, Contains("rank 0 differs from rank 1 in other.weight after step 5"));
  }
}

TEST_CASE("when a rank is killed the others name it and the collective", "[distributed]") {
  const auto results = run_failing("dies");
  CHECK(results[1].signal == SIGKILL);
  for (const int rank : {0, 2}) {
    require_one_line(results[rank], kOtherRankFailed, "rank 1 has died or hangs");
    CHECK_THAT(results[rank].err, Contains("waited for the all-reduce without end"));
  }
}

TEST_CASE("when the rank with the store is killed the others name it", "[distributed]") {
  const auto results = run_failing("master_dies");
  for (const int rank : {1, 2}) require_one_line(results[rank], kOtherRankFailed, "rank 0 has ended");
}

TEST_CASE("when a rank hangs the others name it within the timeout", "[distributed]") {
  const auto results = run_failing("stops");
  for (const int rank : {0, 2}) {
    require_one_line(results[rank], kOtherRankFailed, "rank 1 has died or hangs");
    CHECK_THAT(results[rank].err, Contains("waited for the all-reduce without end"));
  }
  CHECK(results[1].signal == SIGKILL);  // by the test, at its end
}

TEST_CASE("when the rank with the store hangs the others name it", "[distributed]") {
  const auto results = run_failing("master_stops");
  for (const int rank : {1, 2}) require_one_line(results[rank], kOtherRankFailed, "rank 0");
}

TEST_CASE("when a rank throws the others repeat its message", "[distributed]") {
  for (const auto& [scenario, failing] : {std::pair("throws", 2), std::pair("master_throws", 0)}) {
    const auto results = run_failing(scenario);
    for (int rank = 0; rank < 3; ++rank) {
      if (rank == failing) continue;
      require_one_line(results[rank], kOtherRankFailed, fmt::format("rank {} has failed: the cat sat on it", failing));
    }
    CHECK(results[failing].exit_code == kThrew);
  }
}

TEST_CASE("a rank that lives but does not take part is named by those that waited", "[distributed]") {
  const auto results = run_failing("is_late");
  for (const int rank : {0, 2}) {
    CHECK(results[rank].exit_code != 0);
    CHECK_THAT(results[rank].err,
               Contains(fmt::format("rank 1 did not take part in the all-reduce without end within {} s",
                                    kScenarioTimeoutSeconds)));
  }
}
