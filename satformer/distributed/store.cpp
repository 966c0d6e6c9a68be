#include "satformer/distributed/store.h"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "satformer/core/error.h"

namespace satformer::distributed {
namespace {

// Keys of each start apart: a launcher's store outlives the ranks that it starts again.
StorePtr with_prefix(StorePtr store, int attempt) {
  return c10::make_intrusive<c10d::PrefixStore>(fmt::format("satformer/{}", attempt), std::move(store));
}

std::string reason(const c10::Error& error) {
  const std::string text = error.what_without_backtrace();
  return text.substr(0, text.find('\n'));
}

[[noreturn]] void fail_to_join(const Place& place, bool opens, std::chrono::milliseconds timeout,
                               const c10::Error& error) {
  const std::string text = reason(error);
  const bool in_use = text.find("EADDRINUSE") != text.npos || text.find("already in use") != text.npos;
  require(!opens || !in_use, "{}:{}: the port is in use; give another MASTER_PORT to all ranks", place.master_address,
          place.master_port);
  require(!opens, "{}:{}: cannot open the ranks' store: {}", place.master_address, place.master_port, text);
  fail(
      "{}:{}: rank 0 cannot be reached there within {:.0f} s; check MASTER_ADDR and MASTER_PORT, and that rank 0 was "
      "started: {}",
      place.master_address, place.master_port, std::chrono::duration<double>(timeout).count(), text);
}

}  // namespace

StorePtr join_store(const Place& place, std::chrono::milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = place.master_port;
  options.isServer = place.rank == 0 && !place.launcher_has_store;
  options.waitWorkers = false;  // the group, which is made next, waits and knows who is missing
  options.timeout = timeout;
  try {
    return with_prefix(c10::make_intrusive<c10d::TCPStore>(place.master_address, options), place.attempt);
  } catch (const c10::Error& error) {
    fail_to_join(place, options.isServer, timeout, error);
  }
}

StorePtr open_local_store(std::uint16_t& port) {
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.waitWorkers = false;
  try {
    auto store = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
    port = store->getPort();
    return with_prefix(std::move(store), /*attempt=*/0);
  } catch (const c10::Error& error) {
    fail("cannot open a port on this machine for the ranks' store: {}", reason(error));
  }
}

std::string set_once(c10d::Store& store, const std::string& key, const std::string& value) {
  const std::vector<std::uint8_t> bytes(value.begin(), value.end());
  const std::vector<std::uint8_t> now = store.compareSet(key, {}, bytes);
  return {now.begin(), now.end()};
}

}  // namespace satformer::distributed
