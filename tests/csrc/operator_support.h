#pragma once
// What the tests of every operator share; the tolerances are in tests/support/tolerances.h.
#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

namespace satformer::tests {

// Standard normal numbers, the same for the same seed.
at::Tensor normal(const std::vector<std::int64_t>& sizes, at::ScalarType dtype, std::uint64_t seed);

// How the rows of a tensor [..., n] lie in memory.
enum class RowLayout {
  kContiguous,
  kSlice,       // columns of a wider tensor: every row apart from the next
  kTransposed,  // the first two dimensions exchanged: no single stride from row to row
  kColumns,     // the last dimension not contiguous
};
inline constexpr RowLayout kRowLayouts[] = {RowLayout::kContiguous, RowLayout::kSlice, RowLayout::kTransposed,
                                            RowLayout::kColumns};
// The numbers of x, laid out so.
at::Tensor with_layout(const at::Tensor& x, RowLayout layout);

// The first line of the error that `call` throws; empty when it throws none.
std::string message_of(const std::function<void()>& call);

// The schema as text.
std::string schema_of(const std::string& name);
bool has_kernels(const std::string& name, std::initializer_list<c10::DispatchKey> keys);

// The gradient of value(), a float64 scalar, in every element of x (float64, contiguous), which value() reads.
at::Tensor central_differences(const std::function<at::Tensor()>& value, const at::Tensor& x);

// bfloat16 autocast on CPU while it lives.
class CPUAutocast {
 public:
  CPUAutocast();
  ~CPUAutocast();
  CPUAutocast(const CPUAutocast&) = delete;
  CPUAutocast& operator=(const CPUAutocast&) = delete;
};

// The results of `call` with one thread and with three.
std::vector<std::vector<at::Tensor>> with_threads(const std::function<std::vector<at::Tensor>()>& call);

}  // namespace satformer::tests
