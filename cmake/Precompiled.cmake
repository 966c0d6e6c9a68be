# satformer_precompile(TARGET): parses LibTorch's tensor headers once for the target's sources, which takes a quarter to a
# half of the time off each (docs/performance.md, "Build time"). Only with GCC; clang would need other flags for ccache.
option(SATFORMER_PCH "Precompile LibTorch's headers" ON)

function(satformer_precompile target)
  if(NOT SATFORMER_PCH OR NOT CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    return()
  endif()
  target_precompile_headers(
    ${target} PRIVATE <ATen/core/Tensor.h> <ATen/TensorOperators.h> <ATen/Parallel.h> <ATen/ops/empty.h>
                      <ATen/ops/zeros.h> ${ARGN})
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>) # for ccache
endfunction()
