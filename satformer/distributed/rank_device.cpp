#include "satformer/distributed/rank_device.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <cstdlib>

#include "satformer/core/error.h"
#include "satformer/runtime/device.h"

namespace satformer::distributed {

c10::Device device_of_rank(const std::string& name, const RankInfo& info) {
  c10::Device device = select_device(name);
  if (device.is_cpu()) return device;
  require(name.find(':') == name.npos,
          "system.device is \"{}\", but there are {} ranks, each with a GPU of its own; say \"cuda\"", name, info.size);
  // Slurm may show each rank its own GPU alone.
  const bool only_own = num_gpus() == 1 && std::getenv("CUDA_VISIBLE_DEVICES") != nullptr;
  require(info.local_rank < num_gpus() || only_own,
          "rank {} is number {} on this machine, which has {} GPU{}: start one rank a GPU, or set system.device=cpu",
          info.rank, info.local_rank, num_gpus(), num_gpus() == 1 ? "" : "s");
  device.set_index(static_cast<c10::DeviceIndex>(only_own ? 0 : info.local_rank));
  c10::impl::VirtualGuardImpl(device.type()).setDevice(device);
  return device;
}

}  // namespace satformer::distributed
