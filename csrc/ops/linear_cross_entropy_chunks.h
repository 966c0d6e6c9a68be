#pragma once
// What linear_cross_entropy is on every device: the matrix products of each chunk of tokens around the device's kernel
// for a chunk's logits.
#include <ATen/core/Tensor.h>
#include <c10/util/FunctionRef.h>

#include "csrc/ops/linear_cross_entropy_checks.h"

namespace satformer::ops {

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

// rows_a_chunk: at most so many tokens at a time; they are shared out evenly.
CrossEntropyResults cross_entropy_in_chunks(const CrossEntropyArguments& arguments, int64_t rows_a_chunk,
                                            c10::function_ref<void(const LogitRows&)> kernel);

}  // namespace satformer::ops
