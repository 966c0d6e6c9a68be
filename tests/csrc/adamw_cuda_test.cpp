// adamw_ on a GPU against the composite definition on the CPU in float64.
#include <ATen/core/Tensor.h>

#include "csrc/ops/adamw.h"
#include "tests/catch.h"
#include "tests/csrc/adamw_support.h"
#include "tests/csrc/cuda_support.h"

namespace satformer::tests::adamw {

TEST_CASE("adamw_CUDA: values for every dtype and size, many parameters", "[ops][cuda]") {
  if (!has_cuda()) return;
  const std::vector<Sizes> sizes{{5}, {}, {1}, {0}, {2, 3, 7}, {8191}, {8192}, {8193}, {300, 1001}};
  Inputs all = make_inputs(sizes, kAllDtypes[0], 1);
  for (std::size_t i = 0; i < kAllDtypes.size(); ++i) {
    INFO(kAllDtypes[i].text());
    const Inputs before = make_inputs(sizes, kAllDtypes[i], i + 2);
    const Inputs got = on_cuda(before);
    ops::adamw_(got.tensors, kSettings, got.steps);
    CHECK(worst_update_error(before, got, kSettings) <= 1);
    append(all, before);
  }
  const Inputs got = on_cuda(all);  // more than a launch takes
  ops::adamw_(got.tensors, kSettings, got.steps);
  CHECK(worst_update_error(all, got, kSettings) <= 1);
}

}  // namespace satformer::tests::adamw
