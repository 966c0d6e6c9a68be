#pragma once
// Checks that ranks have the same of what must be the same. Every rank throws the same Error.
#include <ATen/core/Tensor.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "satformer/distributed/world.h"

namespace satformer::distributed {

// What must be the same, by what errors call it ("library version"), in the order in which it is looked at.
using Facts = std::vector<std::pair<std::string, nlohmann::json>>;

// Error names the rank that differs, the fact (of an object: the key within) and both values. Where most ranks agree
// with one another, a rank outside the majority is the one that differs, else a rank that is not like rank 0.
void require_agreement(World& world, const Facts& facts);

// The same for the tensors' contents, by their CRC-32: Error names the rank and the tensor. `when` ends the message.
void require_equal_tensors(World& world, const std::vector<std::pair<std::string, at::Tensor>>& tensors,
                           const std::string& when);

}  // namespace satformer::distributed
