#pragma once
// How batches are cut from a token dataset. Without torch, for readers of configurations.
#include <cstdint>
#include <optional>

namespace satformer::data {

struct BatchOptions {
  std::int64_t seq_length = 0;
  // With it, attention and positions do not cross documents, which end at `end_of_text_id`.
  bool document_mask = false;
  std::optional<std::int64_t> end_of_text_id{};
};

}  // namespace satformer::data
