#pragma once
// LibTorch's process groups behind one signature: Gloo for tensors on the CPU, NCCL for those on GPUs.
#include <c10/core/Device.h>

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "satformer/distributed/environment.h"
#include "satformer/distributed/store.h"

namespace satformer::distributed {

using BackendPtr = c10::intrusive_ptr<c10d::Backend>;

// All ranks call it. Gloo listens on the interface GLOO_SOCKET_IFNAME where that is set, else on the loopback where
// the ranks' master is there, else on the address of this machine's name.
BackendPtr make_gloo(const StorePtr& store, const RankInfo& info, std::chrono::milliseconds timeout);

// Loads the NCCL half (libsatformer_nccl); Error when it is not there. The device has an index.
BackendPtr make_nccl(const StorePtr& store, const RankInfo& info, std::chrono::milliseconds timeout,
                     c10::Device device);

}  // namespace satformer::distributed
