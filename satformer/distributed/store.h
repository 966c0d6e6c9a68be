#pragma once
// The store through which ranks find one another: a server in rank 0 or in the launcher, a client in every rank.
#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "satformer/distributed/environment.h"

namespace satformer::distributed {

using StorePtr = c10::intrusive_ptr<c10d::Store>;

// Opens the store (rank 0, unless the launcher has it) or connects to it. Error names the address and says whether it
// is in use or out of reach.
StorePtr join_store(const RankInfo& info, std::chrono::milliseconds timeout);

// For a launcher: opens a store on a free port of 127.0.0.1; `port` becomes it. Keys are seen as by join_store.
StorePtr open_local_store(std::uint16_t& port);

// The part of the store that belongs to ranks that have started together (rendezvous.h), counted from 1: a launcher's
// store outlives the ranks that it starts again.
StorePtr generation_store(const StorePtr& store, std::int64_t generation);
constexpr std::int64_t kFirstGeneration = 1;

// Nothing where the store has no such key.
std::optional<std::string> value_of(c10d::Store& store, const std::string& key);

// Sets the key unless it has a value; returns the value that it has then.
std::string set_once(c10d::Store& store, const std::string& key, const std::string& value);

// In a generation's store: why its ranks end before their time; the first one to tell wins.
constexpr const char* kFailureKey = "failure";

}  // namespace satformer::distributed
