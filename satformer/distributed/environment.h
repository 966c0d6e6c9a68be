#pragma once
// Which rank this process is, of how many, according to the program that started it.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace satformer::distributed {

struct RankInfo {
  int rank = 0, size = 1;
  int local_rank = 0;  // among the ranks of this machine
  std::string master_address;
  std::uint16_t master_port = 0;
  bool launcher_has_store = false;  // else rank 0 opens it
  std::string started_by;           // "torchrun", "Slurm", "satformer": for messages
};

using GetVariable = std::function<const char*(const char* name)>;

// From torchrun's variables (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT; the same that --nproc sets), or
// else Slurm's (SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID, and the first host of SLURM_STEP_NODELIST or
// SLURM_JOB_NODELIST; MASTER_ADDR and MASTER_PORT take precedence, and without the latter the port follows from
// SLURM_JOB_ID). Nothing where neither is there, or where there is one rank. Error names a variable that is missing or
// makes no sense.
std::optional<RankInfo> rank_from_environment(const GetVariable& get_variable);
std::optional<RankInfo> rank_from_environment();

// The first host of a Slurm list: "gpu[003-010,012],login1" gives gpu003. Error when there is none.
std::string first_host(const std::string& list);

}  // namespace satformer::distributed
