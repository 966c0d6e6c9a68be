#pragma once
// The rendezvous of ranks in a store that may hold what earlier ranks have left: torchrun restarts ranks beside the
// same store, and what it says of that (TORCHELASTIC_RESTART_COUNT) differs from machine to machine. So rank 0 counts
// generations in the store itself, and the others accept only an invitation that knows them.
#include <chrono>

#include "satformer/distributed/environment.h"
#include "satformer/distributed/store.h"

namespace satformer::distributed {

// Returns the store of this generation once every rank has joined. Error within the timeout names the ranks that have
// not, or repeats what another rank or the launcher has told (kFailureKey).
StorePtr rendezvous(const StorePtr& store, const RankInfo& info, std::chrono::milliseconds timeout);

// Tells the other ranks of a generation that this one ends because of `message`, before they have a Monitor.
void tell_failure(c10d::Store& generation, const RankInfo& info, const std::string& message);

}  // namespace satformer::distributed
