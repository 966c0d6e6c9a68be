#pragma once
// Strict copying of named tensors.
#include <ATen/core/Tensor.h>

#include <map>
#include <string>

namespace satformer::optim {

// Copies each tensor of `from` into the one of the same name in `into` (any device). Names must be the same on both
// sides, shapes and dtypes too; otherwise nothing is copied and the Error names `source` and every mismatch.
void copy_tensors(const std::map<std::string, at::Tensor>& into, const std::map<std::string, at::Tensor>& from,
                  const std::string& source);

}  // namespace satformer::optim
