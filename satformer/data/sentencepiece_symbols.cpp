// Keeps LibTorch and SentencePiece out of each other's memory. Both libraries export a variable FLAGS_minloglevel:
// libc10 an int that only its command-line parser would write, libsentencepiece an absl::Flag of 32 bytes. The dynamic
// linker gives both names to the first definition that it finds; where that is libc10's, SentencePiece's constructor
// writes over what follows it there: a mutex that every run of a TorchScript method locks, and which then never opens.
// This definition stands before both, because programs link libsatformer before LibTorch, and is large enough.
#include <array>
#include <cstddef>

extern "C" {
// NOLINTNEXTLINE(readability-identifier-naming): SentencePiece's name
alignas(std::max_align_t) std::array<std::byte, 64> FLAGS_minloglevel{};
}
