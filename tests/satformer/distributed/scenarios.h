#pragma once
// Tests of several ranks: each rank is a process of the test program that runs one scenario.
#include <map>
#include <string>
#include <vector>

#include "satformer/distributed/world.h"
#include "tests/apps/child_process.h"

namespace satformer::testing {

using Scenario = void (*)(distributed::World&);

// By name; each rank calls the function and then leaves.
const std::map<std::string, Scenario>& scenarios();

constexpr int kScenarioTimeoutSeconds = 6;

// How a rank ends: 0, or Catch's code for a scenario whose checks failed, or one of these.
constexpr int kOtherRankFailed = 91;  // on_failure was called
constexpr int kThrew = 92;            // the scenario threw

// Runs the scenario in `size` ranks on free ports of this machine, which find one another by torchrun's variables.
// Ranks that still run after the time are killed (signal 9).
std::vector<CommandResult> run_ranks(const std::string& scenario, int size, double seconds = 60);

// A port that is free at this moment.
int free_port();

}  // namespace satformer::testing
