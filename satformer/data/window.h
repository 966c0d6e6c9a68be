#pragma once
// A window: seq_length inputs and, one token further on, as many targets.
#include <cstdint>
#include <string_view>

#include "satformer/core/error.h"

namespace satformer::data {

// Error unless a split holds at least one whole window (seq_length + 1 tokens); `split` names it in the message.
inline void require_window(std::string_view split, std::int64_t num_tokens, std::int64_t seq_length,
                           std::string_view advice = "give more text or a smaller seq_length") {
  require(num_tokens > seq_length, "{} has {} tokens; one window of seq_length {} needs {}: {}", split, num_tokens,
          seq_length, seq_length + 1, advice);
}

}  // namespace satformer::data
