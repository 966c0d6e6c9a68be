#include "tests/satformer/distributed/scenarios.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "satformer/core/error.h"
#include "satformer/distributed/agreement.h"
#include "satformer/distributed/flat_list.h"
#include "satformer/distributed/gradient_reducer.h"

// After torch.
#include "tests/catch.h"

namespace satformer::testing {
namespace {

using namespace satformer::distributed;

void collectives(World& world) {
  const int size = world.size();
  const at::Tensor sum = at::full({1000}, world.rank() + 1.0);
  world.all_reduce(sum, "an all-reduce");
  CHECK(at::equal(sum, at::full({1000}, size * (size + 1) / 2.0)));

  for (int root = 0; root < size; ++root) {
    const at::Tensor value = at::full({3}, world.rank() * 10.0);
    world.broadcast(value, root, "a broadcast");
    CHECK(at::equal(value, at::full({3}, root * 10.0)));
  }
  CHECK(world.broadcast_text(world.rank() == 1 ? "from one" : "other", 1, "a text") == "from one");
  CHECK(world.broadcast_text(world.rank() == 0 ? "" : "other", 0, "an empty text").empty());

  const at::Tensor gathered = world.all_gather(at::full({2, 2}, world.rank(), at::kLong), "a gathering");
  REQUIRE(gathered.sizes() == at::IntArrayRef({size, 2, 2}));
  for (int rank = 0; rank < size; ++rank) CHECK(at::equal(gathered[rank], at::full({2, 2}, rank, at::kLong)));

  const std::string own(static_cast<std::size_t>(world.rank()), 'x');
  const std::vector<std::string> texts = world.all_gather_text(own, "texts");
  for (int rank = 0; rank < size; ++rank) CHECK(texts[rank] == std::string(static_cast<std::size_t>(rank), 'x'));
  world.barrier("a barrier");
}

// Rank by rank a part of [0, 23) over tensors of sizes 7, 0, 11 and 5, in pieces of two elements.
void parts(World& world) {
  constexpr std::int64_t kCount = 23;
  const auto make = [] {
    return std::vector<at::Tensor>{at::zeros({7}), at::zeros({0}), at::zeros({11, 1}), at::zeros({5})};
  };
  const at::Tensor expected = at::arange(kCount, at::kFloat);
  const std::vector<at::Tensor> tensors = make();
  const FlatList list(tensors, at::kFloat);
  REQUIRE(list.size() == kCount);
  const Range own = world.partition(kCount);
  list.copy_in(own.begin, expected.slice(0, own.begin, own.end));
  gather_parts(world, kCount, list, /*first=*/0, &list, {.elements = 2, .name = "parts"});
  const at::Tensor all = list.empty(kCount);
  list.copy_out(0, all);
  CHECK(at::equal(all, expected));

  // The same where a rank holds its own part alone, and rank 0 alone wants all.
  const FlatList mine({expected.slice(0, own.begin, own.end).clone()}, at::kFloat);
  const FlatList target(make(), at::kFloat);
  gather_parts(world, kCount, mine, own.begin, world.is_rank_zero() ? &target : nullptr,
               {.elements = 3, .name = "parts"});
  target.copy_out(0, all);
  CHECK(at::equal(all, world.is_rank_zero() ? expected : at::zeros({kCount})));

  broadcast_list(world, target, /*root=*/0, {.elements = 4, .name = "a broadcast"});
  target.copy_out(0, all);
  CHECK(at::equal(all, expected));
}

// Row r's loss is (r + 1) sum(a) + (r + 1)^2 sum(b * b) / 2, and for odd rows sum(c); d takes no part.
struct Rows {
  at::Tensor a = at::full({5}, 2.0).set_requires_grad(true),
             b = at::arange(6, at::kFloat).view({2, 3}).set_requires_grad(true),
             c = at::zeros({3}).set_requires_grad(true), d = at::zeros({4}).set_requires_grad(true);

  std::vector<at::Tensor> parameters() const { return {a, b, c, d}; }
  void backward(std::int64_t row) const {
    const double factor = static_cast<double>(row) + 1;
    at::Tensor loss = a.sum() * factor + (b * b).sum() * (factor * factor / 2);
    if (row % 2 == 1) loss = loss + c.sum();
    loss.backward();
  }
};

void require_gradient(const at::Tensor& actual, const at::Tensor& expected) {
  REQUIRE(actual.defined() == expected.defined());
  if (actual.defined()) CHECK((actual - expected).abs().max().item().toDouble() < 1e-3);
}

// Two steps of `rows` rows, one row a micro-batch, against the same rows in one process.
void reduce_rows(World& world, std::int64_t rows, std::int64_t bucket_bytes, bool overlap) {
  const Rows own, reference;
  GradientReducer reducer(world, own.parameters(), {.bucket_bytes = bucket_bytes, .overlap = overlap});
  for (int step = 0; step < 2; ++step) {
    for (std::int64_t row = 0; row < rows; ++row) reference.backward(row);
    const Range part = world.partition(rows);
    const auto passes = [&](const std::function<void()>& before_last) {
      for (std::int64_t row = part.begin; row < part.end; ++row) {
        if (row + 1 == part.end) before_last();
        own.backward(row);
      }
      return std::vector<double>{static_cast<double>(part.size()), static_cast<double>(step)};
    };
    const std::vector<double> sums = reducer.reduce(passes, "an all-reduce");
    CHECK(sums == std::vector<double>{static_cast<double>(rows), static_cast<double>(step * world.size())});
    for (std::size_t i = 0; i < 4; ++i) {
      INFO("rows " << rows << ", parameter " << i << ", step " << step);
      require_gradient(own.parameters()[i].grad(), reference.parameters()[i].grad());
      // Freed in the first step, as training does; set to 0 where gradients keep their memory.
      for (const at::Tensor& parameter : {own.parameters()[i], reference.parameters()[i]}) {
        if (!overlap && parameter.grad().defined()) parameter.mutable_grad().zero_();
        if (overlap) parameter.mutable_grad().reset();
      }
    }
    // With a bucket for each parameter, d's (which never is ready) comes first; with one for all none is full.
    if (part.size() > 0) CHECK(reducer.begun_in_backward() == 0);
  }
}

void gradients(World& world) {
  for (const std::int64_t rows : {12, 7, 5, 2, 1}) {
    for (const std::int64_t bucket_bytes : {0, 40, 1 << 20}) {
      for (const bool overlap : {true, false}) reduce_rows(world, rows, bucket_bytes, overlap);
    }
  }
}

// Every parameter takes part: all buckets' all-reduces begin within the backward pass.
void overlap(World& world) {
  const at::Tensor a = at::full({4}, 1.0).set_requires_grad(true), b = at::full({4}, 1.0).set_requires_grad(true);
  GradientReducer reducer(world, {a, b}, {.bucket_bytes = 1});
  REQUIRE(reducer.num_buckets() == 2);
  const auto passes = [&](const std::function<void()>& before_last) {
    before_last();
    (a.sum() + b.sum() * 3).backward();
    return std::vector<double>{};
  };
  CHECK(reducer.reduce(passes, "an all-reduce").empty());
  CHECK(reducer.begun_in_backward() == 2);
  CHECK(at::equal(a.grad(), at::full({4}, 1.0 * world.size())));
  CHECK(at::equal(b.grad(), at::full({4}, 3.0 * world.size())));
}

void differing_facts(World& world) {
  const bool odd = world.rank() == 1;
  nlohmann::json configuration = {{"training", {{"batch_size", odd ? 9 : 8}, {"beta1", 0.9}}}};
  require_agreement(world, {{"version", "1"}});
  require_agreement(world, {{"version", "1"}, {"configuration", configuration}});
}

void differing_tensors(World& world) {
  const at::Tensor same = at::arange(5), other = at::arange(5);
  if (world.rank() == 0) other[3] = 7;  // the majority is right, not rank 0
  require_equal_tensors(world, {{"same", same}}, "now");
  require_equal_tensors(world, {{"same", same}, {"other.weight", other}}, "after step 5");
}

void fail_in_rank(World& world, int rank, void (*how)()) {
  world.barrier("a first barrier");
  if (world.rank() == rank) how();
  world.all_reduce(at::zeros({4}), "the all-reduce without end");
}

void dies(World& world) {
  fail_in_rank(world, 1, [] { std::raise(SIGKILL); });
}
void master_dies(World& world) {
  fail_in_rank(world, 0, [] { std::raise(SIGKILL); });
}
void stops(World& world) {
  fail_in_rank(world, 1, [] { std::raise(SIGSTOP); });
}
void master_stops(World& world) {
  fail_in_rank(world, 0, [] { std::raise(SIGSTOP); });
}
void throws(World& world) {
  fail_in_rank(world, 2, [] { fail("the cat sat on it"); });
}
void master_throws(World& world) {
  fail_in_rank(world, 0, [] { fail("the cat sat on it"); });
}
void is_late(World& world) {
  fail_in_rank(world, 1, [] { std::this_thread::sleep_for(std::chrono::seconds(20)); });
}

}  // namespace

const std::map<std::string, Scenario>& scenarios() {
  static const std::map<std::string, Scenario> all = {
      {"collectives", collectives},
      {"parts", parts},
      {"gradients", gradients},
      {"overlap", overlap},
      {"differing_facts", differing_facts},
      {"differing_tensors", differing_tensors},
      {"dies", dies},
      {"master_dies", master_dies},
      {"stops", stops},
      {"master_stops", master_stops},
      {"throws", throws},
      {"master_throws", master_throws},
      {"is_late", is_late},
  };
  return all;
}

}  // namespace satformer::testing

// What run_ranks() starts; hidden from other runs.
TEST_CASE("a rank of a scenario", "[.rank]") {
  using namespace satformer;
  const char* name = std::getenv("SATFORMER_TEST_SCENARIO");
  REQUIRE(name != nullptr);
  at::set_num_threads(1);
  distributed::WorldOptions options;
  options.timeout = std::chrono::seconds(testing::kScenarioTimeoutSeconds);
  options.on_failure = [](const std::string& message) {
    fmt::print(stderr, "{}\n", message);
    std::fflush(stderr);
    _exit(testing::kOtherRankFailed);
  };
  std::unique_ptr<distributed::World> world;
  try {
    world = std::make_unique<distributed::World>(distributed::rank_from_environment().value(), options);
    testing::scenarios().at(name)(*world);
    world->shutdown();
  } catch (const Error& error) {
    if (world) world->report_failure(error.what());
    fmt::print(stderr, "{}\n", error.what());
    std::fflush(stderr);
    _exit(testing::kThrew);
  }
}
