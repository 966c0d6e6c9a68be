#pragma once
// Which data a checkpoint's model is run over.
#include <cstdint>
#include <string>

namespace satformer::eval {

// What is not given is that of the training.
struct SplitOptions {
  std::string folder;  // of the token shards; empty: not given
  std::string name = "val";
  std::int64_t seq_length = 0;  // tokens of one window; 0: not given
};

}  // namespace satformer::eval
