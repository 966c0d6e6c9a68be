#pragma once
// The numbers of a report have seven significant digits: page, tables, plots and sentences tell the same ones.
#include <vector>

#include "satformer/analysis/statistics/bootstrap.h"
#include "satformer/analysis/statistics/moments.h"

namespace satformer::analysis {

// NaN for what is not finite.
double rounded(double value);
std::vector<double> rounded(std::vector<double> values);
Estimate rounded(Estimate estimate);

// Mean and standard deviation as a report has them.
struct Spread {
  double mean = 0.0, deviation = 0.0;
};
Spread spread_of(const Moments& moments);

// The same of several quantities: of each head, source, entry of a matrix.
struct Spreads {
  std::vector<double> means, deviations;
};
Spreads spreads_of(const std::vector<Moments>& moments);

}  // namespace satformer::analysis
