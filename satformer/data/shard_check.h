#pragma once
// The parallel check of a shard's payload.
#include <cstdint>
#include <span>
#include <string>

#include "satformer/data/shard.h"

namespace satformer::data {

// Verifies the checksum (ours) and that every id is below `vocab_size` (0: not checked) and below the header's own.
// Error names the file, and for an id its position in the shard.
void check_shard_payload(const ShardHeader& header, std::span<const std::byte> payload, std::uint64_t vocab_size,
                         const std::string& file);

}  // namespace satformer::data
