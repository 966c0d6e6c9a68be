#pragma once
// Checks of toy_affine, shared by every dispatch key, and its empty output.
#include "tests/csrc/toy_affine.h"

namespace satformer::tests::toy {

void check_toy_affine(const Affine& in);
// Checks, then y [..., n], contiguous.
at::Tensor outputs_of_toy_affine(const Affine& in);

}  // namespace satformer::tests::toy
