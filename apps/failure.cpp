#include "apps/failure.h"

#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <new>

namespace satformer::apps {
namespace {

// Below the size from which the C library maps blocks one by one: what is freed serves small allocations.
constexpr std::size_t kReserveBlock = std::size_t{64} << 10;
std::array<std::atomic<void*>, 8> reserve{};

std::atomic<bool> error_printed{false};

// Fails the allocation in any case: what follows may use the reserve.
void on_no_memory() {
  for (std::atomic<void*>& block : reserve) std::free(block.exchange(nullptr));  // NOLINT(*-no-malloc)
  throw std::bad_alloc();
}

// Copies nothing: the exception's text is used while it is handled.
void print_current_exception() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    print_error("out of memory");
  } catch (const std::exception& error) {
    print_error(error.what());
  } catch (...) {
    print_error("unknown exception");
  }
}

[[noreturn]] void on_terminate() {
  if (!error_printed.load()) {
    if (std::current_exception() != nullptr) {
      print_current_exception();
    } else {
      print_error("terminated without an exception");
    }
  }
  ::_exit(1);
}

iovec piece(std::string_view text) { return {const_cast<char*>(text.data()), text.size()}; }  // only read

}  // namespace

void prepare_for_failure() {
  for (std::atomic<void*>& block : reserve) block = std::malloc(kReserveBlock);  // NOLINT(*-no-malloc)
  std::set_new_handler(on_no_memory);
  std::set_terminate(on_terminate);
}

void print_error(std::string_view message) {
  error_printed = true;
  const std::array<iovec, 3> line{piece("satformer: error: "), piece(message.substr(0, message.find('\n'))),
                                  piece("\n")};
  // At once, so that lines of several ranks do not mix. There is nobody to tell of a failure.
  [[maybe_unused]] const auto written = ::writev(STDERR_FILENO, line.data(), static_cast<int>(line.size()));
}

}  // namespace satformer::apps
