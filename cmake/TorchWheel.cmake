# LibTorch as imported targets of our own: satformer::c10, satformer::torch_cpu and, where the files are
# there, satformer::c10_cuda and satformer::torch_cuda. find_package(Torch) is not used because it demands
# the CUDA toolkit whenever LibTorch was built with CUDA.
#
# SATFORMER_TORCH_DIR: a folder with include/ and lib/, either the `torch` folder of a PyPI wheel or an
# unpacked libtorch archive. Default: the wheel in the clone's .venv.
set(SATFORMER_TORCH_VERSION_REQUIRED 2.11.0)

if(NOT SATFORMER_TORCH_DIR)
  file(GLOB _torch_candidates ${CMAKE_CURRENT_LIST_DIR}/../.venv/lib/python3*/site-packages/torch)
  list(LENGTH _torch_candidates _torch_count)
  if(NOT _torch_count EQUAL 1)
    message(FATAL_ERROR "LibTorch not found: run scripts/setup, or pass -DSATFORMER_TORCH_DIR=DIR "
                        "(a folder with include/ and lib/ of LibTorch ${SATFORMER_TORCH_VERSION_REQUIRED})")
  endif()
  get_filename_component(_torch_candidates "${_torch_candidates}" ABSOLUTE)
  set(SATFORMER_TORCH_DIR "${_torch_candidates}" CACHE PATH "LibTorch: a folder with include/ and lib/")
endif()

# libtorch archives and wheels both carry the version in this header.
set(_torch_version_header "${SATFORMER_TORCH_DIR}/include/torch/headeronly/version.h")
if(NOT EXISTS "${_torch_version_header}")
  message(FATAL_ERROR "SATFORMER_TORCH_DIR=${SATFORMER_TORCH_DIR} holds no LibTorch "
                      "${SATFORMER_TORCH_VERSION_REQUIRED}: include/torch/headeronly/version.h is missing")
endif()
file(STRINGS "${_torch_version_header}" _torch_version_lines REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
string(REGEX REPLACE ".*MAJOR ([0-9]+).*MINOR ([0-9]+).*PATCH ([0-9]+).*" "\\1.\\2.\\3" SATFORMER_TORCH_VERSION
                     "${_torch_version_lines}")
if(NOT SATFORMER_TORCH_VERSION VERSION_EQUAL SATFORMER_TORCH_VERSION_REQUIRED)
  message(FATAL_ERROR "LibTorch ${SATFORMER_TORCH_VERSION_REQUIRED} is needed, but "
                      "SATFORMER_TORCH_DIR=${SATFORMER_TORCH_DIR} is ${SATFORMER_TORCH_VERSION}")
endif()
message(STATUS "LibTorch ${SATFORMER_TORCH_VERSION} in ${SATFORMER_TORCH_DIR}")

# The wheel keeps the CUDA runtime beside torch; an archive keeps it in lib/.
get_filename_component(SATFORMER_SITE_PACKAGES "${SATFORMER_TORCH_DIR}/.." ABSOLUTE)
set(SATFORMER_TORCH_RPATH "${SATFORMER_TORCH_DIR}/lib")
if(EXISTS "${SATFORMER_SITE_PACKAGES}/nvidia/cu13/lib")
  list(APPEND SATFORMER_TORCH_RPATH "${SATFORMER_SITE_PACKAGES}/nvidia/cu13/lib")
endif()

find_package(Threads REQUIRED)

function(satformer_torch_library name)
  add_library(satformer::${name} SHARED IMPORTED GLOBAL)
  set_target_properties(
    satformer::${name}
    PROPERTIES IMPORTED_LOCATION "${SATFORMER_TORCH_DIR}/lib/lib${name}.so"
               INTERFACE_INCLUDE_DIRECTORIES
               "${SATFORMER_TORCH_DIR}/include;${SATFORMER_TORCH_DIR}/include/torch/csrc/api/include"
               INTERFACE_LINK_LIBRARIES "${ARGN}")
endfunction()

satformer_torch_library(c10)
satformer_torch_library(torch_cpu satformer::c10 Threads::Threads)
# -fopenmp: without it at::parallel_for is silently serial. rpath-link: libtorch_cpu needs libcudart and libcupti.
set(_torch_link_options -fopenmp)
foreach(_dir ${SATFORMER_TORCH_RPATH})
  list(APPEND _torch_link_options "LINKER:-rpath-link,${_dir}")
endforeach()
set_target_properties(
  satformer::torch_cpu
  PROPERTIES INTERFACE_COMPILE_DEFINITIONS "USE_DISTRIBUTED;USE_C10D_GLOO;USE_RPC;USE_TENSORPIPE"
             INTERFACE_COMPILE_FEATURES cxx_std_20
             INTERFACE_COMPILE_OPTIONS "$<$<COMPILE_LANGUAGE:CXX>:-fopenmp>"
             INTERFACE_LINK_OPTIONS "${_torch_link_options}")

if(EXISTS "${SATFORMER_TORCH_DIR}/lib/libtorch_cuda.so")
  satformer_torch_library(c10_cuda satformer::c10)
  satformer_torch_library(torch_cuda satformer::c10_cuda satformer::torch_cpu)
  set_property(TARGET satformer::torch_cuda PROPERTY INTERFACE_COMPILE_DEFINITIONS USE_C10D_NCCL)
endif()

# fmt is the copy inside LibTorch's include folder, which would shadow any other.
if(NOT TARGET satformer::fmt)
  add_library(satformer_fmt INTERFACE IMPORTED GLOBAL)
  target_include_directories(satformer_fmt SYSTEM INTERFACE "${SATFORMER_TORCH_DIR}/include")
  target_compile_definitions(satformer_fmt INTERFACE FMT_HEADER_ONLY=1)
  add_library(satformer::fmt ALIAS satformer_fmt)
endif()
