# satformer_formats: everything that knows no tensor, so that it needs no LibTorch (scripts/check_includes proves it). This
# is the one list of its sources: the library, the fuzzers (tests/fuzz), the thread tests (tests/threads) and the check
# read it.
set(SATFORMER_FORMATS_PATTERNS
    core/*.cpp io/*.cpp config/*.cpp run/*.cpp data/*.cpp
    models/architectures.cpp models/model_config.cpp models/model_keys.cpp models/*/facts.cpp
    optim/schedule.cpp
    checkpoint/layout.cpp checkpoint/manifest.cpp checkpoint/trainer_state.cpp
    train/metrics.cpp train/tensorboard.cpp
    analysis/tokens/pattern_check.cpp analysis/tokens/categories.cpp)
set(SATFORMER_FORMATS_WITHOUT data/batch.cpp # makes tensors
    data/sentencepiece_symbols.cpp) # must stand before LibTorch, where libsatformer stands in every program

include(EmbedFiles)

# Sets VARIABLE to the sources, one that is written into the current build folder among them.
function(satformer_formats_sources variable)
  set(folder ${CMAKE_CURRENT_FUNCTION_LIST_DIR})
  list(TRANSFORM SATFORMER_FORMATS_PATTERNS PREPEND ${folder}/ OUTPUT_VARIABLE patterns)
  list(TRANSFORM SATFORMER_FORMATS_WITHOUT PREPEND ${folder}/ OUTPUT_VARIABLE without)
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  list(REMOVE_ITEM sources ${without})
  set(embedded ${CMAKE_CURRENT_BINARY_DIR}/embedded_categories.cpp)
  satformer_embed_files(${embedded} satformer::analysis::embedded
                        kTokenCategories=${folder}/../configs/analysis/token_categories.json)
  set(${variable} ${sources} ${embedded} PARENT_SCOPE)
endfunction()

# What the sources need.
function(satformer_link_formats target)
  target_include_directories(${target} SYSTEM PRIVATE ${PROTOZERO_INCLUDE_DIR} ${Boost_INCLUDE_DIRS})
  target_link_libraries(
    ${target} PUBLIC satformer::fmt nlohmann_json::nlohmann_json
    PRIVATE $<BUILD_INTERFACE:ZLIB::ZLIB> $<BUILD_INTERFACE:PkgConfig::ZSTD> $<BUILD_INTERFACE:PkgConfig::SENTENCEPIECE>
            $<BUILD_INTERFACE:Threads::Threads>)
endfunction()
