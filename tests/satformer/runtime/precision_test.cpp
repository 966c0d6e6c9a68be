#include "satformer/runtime/precision.h"

#include <ATen/autocast_mode.h>

#include "satformer/core/error.h"
#include "tests/catch.h"

using namespace satformer;
using Catch::Matchers::Contains;

TEST_CASE("select_dtype knows its words and names the key of another one", "[core]") {
  CHECK(select_dtype("float32", c10::kCPU, "k") == c10::ScalarType::Float);
  CHECK(select_dtype("bfloat16", c10::kCPU, "k") == c10::ScalarType::BFloat16);
  CHECK(select_dtype("auto", c10::Device(c10::kCUDA, 0), "k") == c10::ScalarType::BFloat16);
  CHECK_THROWS_WITH(select_dtype("float16", c10::kCPU, "a.json: training.dtype"),
                    Contains("a.json: training.dtype is \"float16\"") && Contains("bfloat16 or float32"));
  CHECK_THROWS_WITH(select_dtype("fp8", c10::kCPU, "--dtype"), Contains("--dtype is \"fp8\", expected auto"));
}

TEST_CASE("AutocastGuard sets autocast and puts it back, also nested", "[core]") {
  const auto enabled = [] { return at::autocast::is_autocast_enabled(at::kCPU); };
  REQUIRE_FALSE(enabled());
  {
    const AutocastGuard none(c10::kCPU, c10::ScalarType::Float);
    CHECK_FALSE(enabled());
    const AutocastGuard outer(c10::kCPU, c10::ScalarType::BFloat16);
    CHECK(enabled());
    CHECK(at::autocast::get_autocast_dtype(at::kCPU) == at::kBFloat16);
    {
      const AutocastGuard inner(c10::kCPU, c10::ScalarType::BFloat16);
    }
    CHECK(enabled());
  }
  CHECK_FALSE(enabled());
}
