#include "satformer/runtime/device.h"

#include <ATen/Version.h>

#include "satformer/runtime/version.h"
#include "tests/support/errors.h"

#include "tests/catch.h"

namespace satformer {
namespace {

using testing::contains;
using testing::error_of;

TEST_CASE("devices are chosen by name", "[core][device]") {
  CHECK(select_device("cpu") == c10::Device(c10::DeviceType::CPU));
  for (const char* bad : {"", "gpu", "cuda0", "cuda:", "CPU", "cpu:0"}) {
    INFO(bad);
    CHECK(contains(error_of([&] { select_device(bad); }), "expected auto, cpu, cuda or cuda:N"));
  }
}

TEST_CASE("a GPU is used where there is one, else the reason is said", "[core][device]") {
  std::string reason;
  if (load_cuda(&reason)) {
    CHECK(reason.empty());
    CHECK(num_gpus() > 0);
    CHECK(select_device("auto").str() == "cuda:0");
    CHECK(select_device("cuda").str() == "cuda:0");
    for (const char* bad : {"cuda:x", "cuda:-1", "cuda:999", "cuda:0 "}) {
      CHECK(contains(error_of([&] { select_device(bad); }), "expected cuda:0 to cuda:"));
    }
  } else {
    CHECK(!reason.empty());
    CHECK(!contains(reason, "\n"));
    CHECK(num_gpus() == 0);
    CHECK(select_device("auto").is_cpu());
    CHECK(error_of([] { select_device("cuda"); }) == "device \"cuda\": no GPU can be used: " + reason);
    CHECK(contains(error_of([] { select_device("cuda:0"); }), reason));
  }
  std::string again;
  load_cuda(&again);
  CHECK(again == reason);
}

TEST_CASE("the version names what is in use", "[core][version]") {
  const std::string text = version_text();
  INFO(text);
  CHECK(text.starts_with("satformer " + version() + "\n"));
  CHECK(contains(text, "LibTorch 2.11.0"));
  CHECK(contains(text, "compiled by "));
  CHECK(contains(text, "CPU capability " + at::get_cpu_capability()));
  std::string reason;
  CHECK(contains(text, load_cuda(&reason) ? "can be used" : reason));
}

}  // namespace
}  // namespace satformer
