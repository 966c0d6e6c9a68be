#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <stdexcept>
#include <thread>

#include "tests/satformer/distributed/scenarios.h"
#include "tests/support/folders.h"

namespace satformer::testing {

int free_port() {
  const int descriptor = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  const bool bound = bind(descriptor, generic, length) == 0 && getsockname(descriptor, generic, &length) == 0;
  close(descriptor);
  if (!bound) throw std::runtime_error("no free port");
  return ntohs(address.sin_port);
}

std::vector<CommandResult> run_ranks(const std::string& scenario, int size, double seconds) {
  const TemporaryFolder folder;
  const int port = free_port();
  std::vector<std::unique_ptr<Command>> ranks;
  for (int rank = 0; rank < size; ++rank) {
    const std::filesystem::path own = folder.path() / fmt::format("rank{}", rank);
    std::filesystem::create_directory(own);
    ranks.push_back(std::make_unique<Command>(CommandLine{
        "/proc/self/exe",
        {"[.rank]"},
        own,
        {fmt::format("RANK={}", rank), fmt::format("LOCAL_RANK={}", rank), fmt::format("WORLD_SIZE={}", size),
         "MASTER_ADDR=127.0.0.1", fmt::format("MASTER_PORT={}", port), "SATFORMER_TEST_SCENARIO=" + scenario}}));
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  std::vector<CommandResult> results;
  for (const auto& rank : ranks) {
    while (rank->running() && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    rank->send(SIGKILL);
    results.push_back(rank->wait());
  }
  return results;
}

}  // namespace satformer::testing
