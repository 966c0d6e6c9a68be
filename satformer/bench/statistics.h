#pragma once
// How a few repeated measurements are summed up.
#include <nlohmann/json.hpp>
#include <vector>

namespace satformer::bench {

struct Summary {
  double median = 0.0, min = 0.0, max = 0.0;
};

// Of at least one sample; the median of an even number is the mean of the middle two.
Summary summarize(std::vector<double> samples);

// What a quarter and three quarters of the samples lie below, between neighbours by proportion. Of at least one sample.
struct Quartiles {
  double lower = 0.0, upper = 0.0;
};
Quartiles quartiles(std::vector<double> samples);

// numerators[i] / denominators[i]: two things measured in the same round, so that what slows the machine for a while
// slows both. The vectors are of one length.
std::vector<double> ratios_by_round(const std::vector<double>& numerators, const std::vector<double>& denominators);

// {"median", "min", "max"}
nlohmann::json to_json(const Summary& summary);

}  // namespace satformer::bench
