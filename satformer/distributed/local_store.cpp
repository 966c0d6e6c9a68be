#include "satformer/distributed/local_store.h"

#include <fmt/format.h>
#include <unistd.h>

#include "satformer/distributed/launcher.h"
#include "satformer/distributed/store.h"

namespace satformer::distributed {

struct LocalStore::Store {
  StorePtr store;
};

// Its ranks start once.
LocalStore::LocalStore() {
  store_ = std::make_unique<Store>(Store{generation_store(open_local_store(port_), kFirstGeneration)});
}

LocalStore::~LocalStore() = default;

std::string LocalStore::tell_failure(const std::string& message) {
  return set_once(*store_->store, kFailureKey, message);
}

std::vector<std::string> rank_variables(int rank, int ranks, std::uint16_t port) {
  return {fmt::format("RANK={}", rank),
          fmt::format("LOCAL_RANK={}", rank),
          fmt::format("WORLD_SIZE={}", ranks),
          fmt::format("LOCAL_WORLD_SIZE={}", ranks),
          "MASTER_ADDR=127.0.0.1",
          fmt::format("MASTER_PORT={}", port),
          "TORCHELASTIC_USE_AGENT_STORE=True",
          fmt::format("{}={}", kLauncherVariable, ::getpid())};
}

}  // namespace satformer::distributed
