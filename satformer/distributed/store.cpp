#include "satformer/distributed/store.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "satformer/core/error.h"
#include "satformer/core/first_line.h"
#include "satformer/io/file_descriptor.h"

namespace satformer::distributed {
namespace {

// A launcher's store may serve others too.
StorePtr with_prefix(StorePtr store) { return c10::make_intrusive<c10d::PrefixStore>("satformer", std::move(store)); }

std::string reason(const c10::Error& error) { return first_line(error.what_without_backtrace()); }

[[noreturn]] void fail_to_join(const RankInfo& info, bool opens, std::chrono::milliseconds timeout,
                               const c10::Error& error) {
  const std::string text = reason(error);
  const bool in_use = text.find("EADDRINUSE") != text.npos || text.find("already in use") != text.npos;
  require(!opens || !in_use, "{}:{}: the port is in use; give another MASTER_PORT to all ranks", info.master_address,
          info.master_port);
  require(!opens, "{}:{}: cannot open the ranks' store: {}", info.master_address, info.master_port, text);
  fail(
      "{}:{}: rank 0 cannot be reached there within {:.0f} s; check MASTER_ADDR and MASTER_PORT, and that rank 0 was "
      "started: {}",
      info.master_address, info.master_port, std::chrono::duration<double>(timeout).count(), text);
}

// A port of 127.0.0.1 alone: left to itself the store's server listens on every address of the machine.
FileDescriptor loopback_socket(std::uint16_t& port) {
  constexpr const char* kName = "a port on 127.0.0.1 for the ranks' store";
  const int opened = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (opened < 0) fail_system("open", kName, errno);
  FileDescriptor descriptor(opened, kName);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(opened, generic, length) != 0 || ::getsockname(opened, generic, &length) != 0) {
    fail_system("open", kName, errno);
  }
  port = ntohs(address.sin_port);
  return descriptor;
}

}  // namespace

StorePtr join_store(const RankInfo& info, std::chrono::milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = info.master_port;
  options.isServer = info.rank == 0 && !info.launcher_has_store;
  options.waitWorkers = false;  // the group, which is made next, waits and knows who is missing
  options.timeout = timeout;
  try {
    return with_prefix(c10::make_intrusive<c10d::TCPStore>(info.master_address, options));
  } catch (const c10::Error& error) {
    fail_to_join(info, options.isServer, timeout, error);
  }
}

StorePtr open_local_store(std::uint16_t& port) {
  const FileDescriptor socket = loopback_socket(port);
  c10d::TCPStoreOptions options;
  options.port = port;
  options.isServer = true;
  options.waitWorkers = false;
  options.masterListenFd = ::fcntl(socket.get(), F_DUPFD_CLOEXEC, 0);  // the server closes it
  try {
    auto store = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
    return with_prefix(std::move(store));
  } catch (const c10::Error& error) {
    fail("cannot open the ranks' store on 127.0.0.1:{}: {}", port, reason(error));
  }
}

StorePtr generation_store(const StorePtr& store, std::int64_t generation) {
  return c10::make_intrusive<c10d::PrefixStore>(fmt::format("{}", generation), store);
}

std::optional<std::string> value_of(c10d::Store& store, const std::string& key) {
  if (!store.check({key})) return std::nullopt;
  return store.get_to_str(key);
}

std::string set_once(c10d::Store& store, const std::string& key, const std::string& value) {
  const std::vector<std::uint8_t> bytes(value.begin(), value.end());
  const std::vector<std::uint8_t> now = store.compareSet(key, {}, bytes);
  return {now.begin(), now.end()};
}

}  // namespace satformer::distributed
