# The fuzz targets without a fuzzer: each runs on its inputs in corpus/, by the build's own compiler, against
# libsatformer_formats alone.
set(fuzz_dir ${CMAKE_CURRENT_LIST_DIR})
add_library(satformer_fuzz_replay STATIC ${fuzz_dir}/fuzz.cpp ${fuzz_dir}/replay.cpp)
target_link_libraries(satformer_fuzz_replay PUBLIC satformer_formats satformer_flags)
target_compile_options(satformer_fuzz_replay PUBLIC -O0) # as the tests: compiled more often than they run
file(GLOB fuzz_targets CONFIGURE_DEPENDS ${fuzz_dir}/targets/*.cpp)
foreach(target ${fuzz_targets})
  get_filename_component(name ${target} NAME_WE)
  add_executable(fuzz_replay_${name} ${target})
  target_link_libraries(fuzz_replay_${name} PRIVATE satformer_fuzz_replay)
  add_test(NAME fuzz_replay_${name} COMMAND fuzz_replay_${name} ${fuzz_dir}/corpus/${name})
endforeach()

# A minute of fuzzing; skipped where clang++ or its libFuzzer is missing. Builds first, in build-fuzz.
add_test(NAME fuzz COMMAND ${CMAKE_SOURCE_DIR}/scripts/fuzz 60)
set_tests_properties(fuzz PROPERTIES LABELS fuzz SKIP_RETURN_CODE 77 TIMEOUT 3600 RUN_SERIAL ON)
