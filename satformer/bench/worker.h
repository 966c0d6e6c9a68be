#pragma once
// The measuring process's side of a comparison. Every contestant runs in a process of its own (so that its peak memory
// is its own) and does what the parent asks; the parent asks one at a time, round by round. A line is one JSON object;
// each request gets one reply.
//
//   {"command": "start", "workload": "training" | "bound", "config": RUN CONFIGURATION}
//                                        {"num_parameters": N}
//       the configuration of `train`; of `system`, device and threads count; of `training`, dtype
//   {"command": "round", "steps": N}     {"seconds": S}      N steps, device idle at both ends
//   {"command": "products"}              {"size": N, "flops_per_second": F}
//   {"command": "memory"}                {"peak_bytes": N, "idle_bytes": N}
//       CPU: the process's peak resident set, and what was resident before the start. CUDA: the allocator's peak, and
//       0.
//   {"command": "parts"}                 {"seconds": S, "parts": {PART: S, ...}, "operators": [{"name", "part",
//   "seconds",
//                                        "calls"}, ...]}
//       one more step with every operator timed (bench/operator_times.h); "other" is the rest of the step
//
// On failure the reply is {"error": TEXT} and the process ends. It also ends when its input does.
#include <iosfwd>

namespace satformer::bench {

// Answers requests until the input ends. Returns false after a failure that it has replied to.
bool serve_measurements(std::istream& input, std::ostream& output);

}  // namespace satformer::bench
