#pragma once
// What linear_cross_entropy is on every device: argument checks, and the matrix products of each chunk of tokens around
// the device's kernel for a chunk's logits.
#include <ATen/core/Tensor.h>
#include <c10/util/FunctionRef.h>

#include <array>
#include <optional>

namespace satformer::ops {

struct CrossEntropyArguments {
  at::Tensor hidden, weight, targets;
  int64_t ignore_index = -100;
  double scale = 1;
  std::array<bool, 2> wanted{false, false};           // gradients of hidden and weight
  std::optional<at::ScalarType> grad_weight_dtype{};  // absent: weight's
};
// Throws where shapes, dtypes or devices are wrong; targets' values are not looked at.
void check_cross_entropy(const char* op, const CrossEntropyArguments& arguments);

// A chunk for the kernel: it writes losses[i] = scale * -log softmax(logits[i])[targets[i]] (0 where the target is
// ignored) and, with_gradients, overwrites logits with the gradients of the sum of the losses.
struct LogitRows {
  at::Tensor logits;   // [n, V], rows contiguous
  at::Tensor targets;  // [n], contiguous
  at::Tensor losses;   // [n], contiguous, arithmetic dtype
  int64_t ignore_index;
  double scale;
  bool with_gradients;
};

struct CrossEntropyResults {
  at::Tensor losses;       // [N], one for each token, arithmetic dtype
  at::Tensor grad_hidden;  // undefined where not wanted
  at::Tensor grad_weight;
};
CrossEntropyResults empty_results(const CrossEntropyArguments& arguments);

// rows_a_chunk: at most so many tokens at a time; they are shared out evenly.
CrossEntropyResults cross_entropy_in_chunks(const CrossEntropyArguments& arguments, int64_t rows_a_chunk,
                                            c10::function_ref<void(const LogitRows&)> kernel);

}  // namespace satformer::ops
