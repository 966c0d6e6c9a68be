#pragma once
// How unevenly a sum is spread over those that share it.
#include <cstdint>
#include <vector>

namespace satformer::analysis {

// Concentration of an activity over heads. Of values >= 0:
//   Gini = sum over i of (2 i - n - 1) x_i / (n sum x), x ascending, i from 1: 0 when all are alike, (n - 1) / n when
//   one has all. 0 when the sum is 0.
double gini(std::vector<double> values);
// The share of the sum that the `count` largest have; 0 when the sum is 0.
double top_share(std::vector<double> values, std::int64_t count);

}  // namespace satformer::analysis
