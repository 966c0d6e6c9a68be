#pragma once
// AdamW with decoupled weight decay (Loshchilov and Hutter, arXiv 1711.05101), one call of satformer::adamw_ a group:
//   p *= 1 - lr * weight_decay
//   m = beta1 m + (1 - beta1) g        v = beta2 v + (1 - beta2) g^2
//   p -= lr * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "satformer/core/range.h"
#include "satformer/optim/adamw_options.h"
#include "satformer/optim/parameter_groups.h"

namespace satformer::optim {

class AdamW {
 public:
  // Parameters: float32, bfloat16, float16 or float64, dense in memory (csrc/ops/adamw.h), one device, names unique.
  // The state (m, v, t) is allocated here, zero. With `owned`, a range of the sequence of all elements of all
  // parameters in the groups' order, m and v exist for those alone, and step() changes no other ones: bit for bit as
  // without it. Parameters are then contiguous.
  AdamW(std::vector<ParameterGroup> groups, const AdamWOptions& options, std::optional<Range> owned = {});

  // One update from every parameter's .grad() times gradient_factor; a parameter without a gradient is left alone, its
  // t too. The gradients themselves stay as they are.
  void step(double learning_rate, double gradient_factor = 1.0);
  // keeps_memory: the gradients become 0 where they are; else they are freed.
  void zero_grad(bool keeps_memory = false);

  const std::vector<ParameterGroup>& groups() const { return groups_; }
  // The defined gradients, in the groups' order.
  std::vector<at::Tensor> gradients() const;

  // The state by parameter name: exp_avg.NAME and exp_avg_sq.NAME with the parameter's shape, step.NAME float32 [].
  // The first two are the live tensors, step.NAME tells t at the time of the call. Error with `owned`, where
  // exp_avgs() and exp_avg_sqs() give what is held.
  std::map<std::string, at::Tensor> state() const;
  // Copies a whole state back in, or with `owned` the part of it that is held here. Error, and nothing copied, names
  // `source` and each tensor that is missing, unknown or of another shape or dtype, or a step that is no count.
  void load_state(const std::map<std::string, at::Tensor>& state, const std::string& source);

  // The elements that are held here, in the sequence; all of them without `owned`.
  const Range& owned() const { return owned_; }
  std::int64_t num_elements() const { return num_elements_; }  // of the whole sequence
  // The live tensors of m, and of v, for the owned elements in order; together owned().size() elements.
  std::vector<at::Tensor> exp_avgs() const;
  std::vector<at::Tensor> exp_avg_sqs() const;
  // step.NAME of every parameter, as in state().
  std::map<std::string, at::Tensor> steps() const;
  // Every parameter in the groups' order.
  std::vector<at::Tensor> parameters() const;

 private:
  struct Slot {
    at::Tensor exp_avg, exp_avg_sq;  // of the owned part: the parameter's shape when it is whole, else [n]
    Range part;                      // of the parameter's elements
    std::int64_t step = 0;
  };
  template <typename Function>
  void for_each_slot(const Function& function) const;
  static at::Tensor owned_part(const Slot& slot, const at::Tensor& tensor);

  std::vector<ParameterGroup> groups_;
  std::vector<std::vector<Slot>> slots_;  // as groups_[i].parameters
  AdamWOptions options_;
  std::int64_t num_elements_ = 0;
  Range owned_;
};

}  // namespace satformer::optim
