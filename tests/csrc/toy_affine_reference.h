#pragma once
// toy_affine in plain ATen calls: the definition that the kernel is held to.
#include "tests/csrc/toy_affine.h"

namespace satformer::tests::toy {

at::Tensor toy_affine_reference(const Affine& in);

}  // namespace satformer::tests::toy
