#pragma once
// Strict copying of named tensors.
#include <ATen/core/Tensor.h>

#include <map>
#include <string>

namespace satformer::optim {

// Names must be the same on both sides, shapes and dtypes too; otherwise Error names `source`, where `from` comes from,
// and every mismatch.
void require_same_tensors(const std::map<std::string, at::Tensor>& into, const std::map<std::string, at::Tensor>& from,
                          const std::string& source);

// Copies each tensor of `from` into the one of the same name in `into` (any device). Nothing is copied when they are
// not the same in the sense above.
void copy_tensors(const std::map<std::string, at::Tensor>& into, const std::map<std::string, at::Tensor>& from,
                  const std::string& source);

}  // namespace satformer::optim
