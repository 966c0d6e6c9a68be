// The rendezvous beside a store that holds what earlier ranks have left.
#include "satformer/distributed/rendezvous.h"

#include <future>
#include <vector>

#include "satformer/core/error.h"

// After torch.
#include "tests/catch.h"

namespace {

using namespace satformer::distributed;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;

class RankStarter {
 public:
  RankStarter() : store_(open_local_store(port_)) {}

  // What the rank gets: its generation's store, or Error.
  std::future<StorePtr> start(int rank, int size, std::chrono::milliseconds timeout = 20s) const {
    RankInfo info;
    info.rank = rank;
    info.size = size;
    info.master_address = "127.0.0.1";
    info.master_port = port_;
    info.launcher_has_store = true;
    info.started_by = "torchrun";
    return std::async(std::launch::async,
                      [info, timeout] { return rendezvous(join_store(info, timeout), info, timeout); });
  }

 private:
  std::uint16_t port_ = 0;
  StorePtr store_;
};

void require_together(std::future<StorePtr> first, std::future<StorePtr> second) {
  const StorePtr a = first.get(), b = second.get();
  a->set("key", std::string("value"));
  // A client's set is not acknowledged, so that another client may be served first; its own next request comes after.
  REQUIRE(value_of(*a, "key") == "value");
  CHECK(value_of(*b, "key") == "value");
  CHECK_FALSE(value_of(*b, kFailureKey).has_value());
  set_once(*b, kFailureKey, "killed");  // what this generation leaves
}

std::string error_of(std::future<StorePtr> future) {
  try {
    future.get();
    return "none";
  } catch (const satformer::Error& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("ranks that are restarted beside the same store find one another, whichever is first", "[distributed]") {
  const RankStarter ranks;
  for (const int first : {0, 1, 1, 0}) {
    auto one = ranks.start(first, 2);
    if (first == 1) one.wait_for(100ms);
    auto other = ranks.start(1 - first, 2);
    require_together(first == 0 ? std::move(one) : std::move(other), first == 0 ? std::move(other) : std::move(one));
  }
}

TEST_CASE("a rank that does not join is named by all that have", "[distributed]") {
  const RankStarter ranks;
  auto one = ranks.start(1, 3, 2s), zero = ranks.start(0, 3, 1s);
  CHECK_THAT(error_of(std::move(zero)), Contains("rank 2 of 3 did not join within 1 s"));
  CHECK_THAT(error_of(std::move(one)), Contains("rank 0 has failed: rank 2 of 3 did not join within 1 s"));
  CHECK_THAT(error_of(ranks.start(1, 3, 300ms)), Contains("rank 0 of 3 did not join within"));
}

TEST_CASE("two processes of one rank are told", "[distributed]") {
  const RankStarter ranks;
  auto first = ranks.start(1, 2);
  first.wait_for(300ms);
  auto second = ranks.start(1, 2), zero = ranks.start(0, 2);
  CHECK_THAT(error_of(std::move(first)), Contains("another process has joined as rank 1"));
  require_together(std::move(zero), std::move(second));
}
