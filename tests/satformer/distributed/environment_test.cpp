#include "satformer/distributed/environment.h"

#include <map>

#include "satformer/core/error.h"
#include "tests/catch.h"

namespace {

using namespace satformer::distributed;
using Catch::Matchers::Contains;
using Variables = std::map<std::string, std::string>;

std::optional<RankInfo> rank_info(const Variables& variables) {
  return rank_from_environment([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

const Variables kTorchrun = {
    {"RANK", "3"}, {"LOCAL_RANK", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "node7"}, {"MASTER_PORT", "1234"}};
const Variables kSlurm = {
    {"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "8"}, {"SLURM_LOCALID", "1"}, {"SLURM_JOB_NODELIST", "gpu[003-010,012]"}};

Variables with(Variables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  return variables;
}

Variables without(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

}  // namespace

TEST_CASE("a rank's number from torchrun's variables", "[distributed]") {
  const RankInfo found = rank_info(kTorchrun).value();
  CHECK(found.rank == 3);
  CHECK(found.size == 4);
  CHECK(found.local_rank == 1);
  CHECK(found.master_address == "node7");
  CHECK(found.master_port == 1234);
  CHECK_FALSE(found.launcher_has_store);
  CHECK(rank_info(with(kTorchrun, "TORCHELASTIC_USE_AGENT_STORE", "True")).value().launcher_has_store);
}

TEST_CASE("a rank's number from Slurm's variables", "[distributed]") {
  const RankInfo found = rank_info(kSlurm).value();
  CHECK(found.rank == 5);
  CHECK(found.size == 8);
  CHECK(found.local_rank == 1);
  CHECK(found.master_address == "gpu003");
  CHECK(found.master_port == 29500);
  CHECK(rank_info(with(kSlurm, "SLURM_JOB_ID", "4000123")).value().master_port == 10123);
  CHECK(rank_info(with(kSlurm, "MASTER_PORT", "777")).value().master_port == 777);
  CHECK(rank_info(with(kSlurm, "MASTER_ADDR", "10.0.0.1")).value().master_address == "10.0.0.1");
  CHECK(rank_info(with(kSlurm, "SLURM_STEP_NODELIST", "gpu009")).value().master_address == "gpu009");
  // Whoever sets RANK means it.
  Variables both = kSlurm;
  both.insert(kTorchrun.begin(), kTorchrun.end());
  CHECK(rank_info(both).value().rank == 3);
}

TEST_CASE("without variables, or with those of one rank, a process is alone", "[distributed]") {
  CHECK_FALSE(rank_info({}).has_value());
  CHECK_FALSE(rank_info({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).has_value());
  CHECK_FALSE(rank_info({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}}).has_value());
  CHECK_FALSE(rank_info({{"SLURM_JOB_ID", "12"}, {"SLURM_JOB_NODELIST", "a"}}).has_value());
}

TEST_CASE("a variable that is missing or makes no sense is named", "[distributed]") {
  CHECK_THROWS_WITH(rank_info(without(kTorchrun, "WORLD_SIZE")), Contains("has RANK but no WORLD_SIZE"));
  CHECK_THROWS_WITH(rank_info(without(kTorchrun, "RANK")), Contains("has WORLD_SIZE but no RANK"));
  CHECK_THROWS_WITH(rank_info(without(kTorchrun, "MASTER_ADDR")), Contains("MASTER_ADDR"));
  CHECK_THROWS_WITH(rank_info(with(kTorchrun, "RANK", "4")),
                    Contains("RANK is \"4\", expected an integer from 0 to 3"));
  CHECK_THROWS_WITH(rank_info(with(kTorchrun, "RANK", "1x")), Contains("RANK is \"1x\""));
  CHECK_THROWS_WITH(rank_info(with(kTorchrun, "MASTER_PORT", "70000")), Contains("MASTER_PORT is \"70000\""));
  CHECK_THROWS_WITH(rank_info(without(kSlurm, "SLURM_JOB_NODELIST")), Contains("SLURM_JOB_NODELIST"));
  CHECK_THROWS_WITH(rank_info(without(kSlurm, "SLURM_LOCALID")), Contains("SLURM_LOCALID"));
}

TEST_CASE("the first host of a Slurm list", "[distributed]") {
  CHECK(first_host("node1") == "node1");
  CHECK(first_host("node1,node2") == "node1");
  CHECK(first_host("gpu[003-010,012],login1") == "gpu003");
  CHECK(first_host("rack[2,4]-n[07-09]") == "rack2-n07");
  CHECK_THROWS_WITH(first_host("gpu[003"), Contains("lacks a ]"));
  CHECK_THROWS_WITH(first_host(""), Contains("names no host"));
}
