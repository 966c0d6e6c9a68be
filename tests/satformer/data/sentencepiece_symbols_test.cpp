// SentencePiece must not construct its flags inside LibTorch's variables.
#include <dlfcn.h>

#include <string>

#include "tests/catch.h"

TEST_CASE("SentencePiece and LibTorch share no variable", "[data]") {
  void* const variable = dlsym(RTLD_DEFAULT, "FLAGS_minloglevel");
  REQUIRE(variable != nullptr);
  Dl_info info{};
  REQUIRE(dladdr(variable, &info) != 0);
  CHECK_THAT(std::string(info.dli_fname), Catch::Contains("libsatformer.so"));
}
