#pragma once
// The parts of a summary that tell of tokens: their classes, those with the largest and smallest gates, the sample.
#include "satformer/analysis/gates/summary.h"

namespace satformer::analysis {

CategorySummary summarize_categories(const GateCollector& collector, const TokenCategories& categories,
                                     const BootstrapOptions& options);

// Of each head, those that occur at least min_token_count times.
TokenList list_tokens(const GateCollector& collector, const TokenClassifier* classifier,
                      const GateSummaryOptions& options);

TextSummary text_sample(const GateCollector& collector, const TokenClassifier* classifier);

}  // namespace satformer::analysis
