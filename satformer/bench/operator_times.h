#pragma once
// Where a step's time goes, by operator.
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace satformer::bench {

enum class Part { matrix_products, attention, fused_passes, optimizer, other };
constexpr std::size_t kNumParts = 5;
// "matrix_products", "attention", "fused_passes", "optimizer", "other"
const char* name_of(Part part);

// The operators that are known by name, and their parts.
struct NamedOperator {
  std::string_view name;
  Part part;
};
std::span<const NamedOperator> named_operators();

// Which part an operator called "aten::mm", "satformer::gated_value_mix", ... is: that of named_operators(), where a
// name with "_" after it counts as the name; attention for every scaled_dot_product_attention of ATen; fused passes for
// the rest of namespace satformer; "other" for all else.
Part part_of(std::string_view operator_name);

struct OperatorTime {
  std::string name;
  Part part = Part::other;
  double seconds = 0.0;  // exclusive: without the operators called inside it
  std::int64_t calls = 0;
};

// Runs `work` with ATen's record functions on and returns the time of every operator that was called, longest first.
// What an attention or optimiser operator calls counts as that part, and so does what a fused pass calls but for matrix
// products. `synchronize`, when given, is called as each operator ends, so that asynchronous work is timed too.
std::vector<OperatorTime> time_operators(const std::function<void()>& work,
                                         const std::function<void()>& synchronize = {});

}  // namespace satformer::bench
