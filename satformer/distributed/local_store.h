#pragma once
// The store of ranks that a process starts on its own machine, without LibTorch's headers.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace satformer::distributed {

class LocalStore {
 public:
  // Opens it on a free port.
  LocalStore();
  ~LocalStore();
  LocalStore(const LocalStore&) = delete;
  LocalStore& operator=(const LocalStore&) = delete;

  std::uint16_t port() const { return port_; }

  // Tells the ranks why they must end, unless one has told already; returns what they were told.
  std::string tell_failure(const std::string& message);

 private:
  struct Store;
  std::uint16_t port_ = 0;
  std::unique_ptr<Store> store_;
};

// "NAME=VALUE", as torchrun would set them, of one of `ranks` ranks on this machine that use this process's store.
std::vector<std::string> rank_variables(int rank, int ranks, std::uint16_t port);

}  // namespace satformer::distributed
