#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <ranges>
#include <vector>

#include "satformer/bench/memory.h"
#include "satformer/bench/trunk.h"
#include "satformer/bench/workload.h"
#include "satformer/core/clock.h"
#include "satformer/nn/attention_context.h"

namespace satformer::bench {
namespace {

at::Tensor random_matrix(std::int64_t rows, std::int64_t columns, const at::TensorOptions& options) {
  return at::randn({rows, columns}, options);
}

// y = x W^T, the gradients gx = gy W and gW = gy^T x, into memory that is there already. What the step keeps (x, y, W,
// gW) belongs to the product; gy and gx pass by and are shared.
struct Product {
  Product(std::int64_t rows, std::int64_t inputs, std::int64_t outputs, const at::TensorOptions& options)
      : x(random_matrix(rows, inputs, options)),
        weight(random_matrix(outputs, inputs, options)),
        y(at::empty({rows, outputs}, options)),
        weight_gradient(at::empty({outputs, inputs}, options)) {}

  void forward() { at::mm_out(y, x, weight.t()); }
  void backward(const at::Tensor& gradient, at::Tensor& input_gradient) {
    at::mm_out(input_gradient, gradient, weight);
    at::mm_out(weight_gradient, gradient.t(), x);
  }

  at::Tensor x, weight, y, weight_gradient;
};

// Attention alone, on tensors as the projections leave them: [B, T, H, hd].
class AttentionProduct {
 public:
  AttentionProduct(const Trunk& trunk, std::int64_t batch, std::int64_t seq_length, const at::TensorOptions& options)
      : grouped_(trunk.num_heads != trunk.num_kv_heads) {
    const auto make = [&](std::int64_t heads) {
      return at::randn({batch, seq_length, heads, trunk.head_dim()}, options).requires_grad_();
    };
    inputs_ = {make(trunk.num_heads), make(trunk.num_kv_heads), make(trunk.num_kv_heads)};
    gradient_ = at::randn({batch, seq_length, trunk.num_heads, trunk.head_dim()}, options).transpose(1, 2);
  }

  void forward(const at::Tensor& mask) {
    const std::optional<at::Tensor> bias = mask.defined() ? std::optional(mask) : std::nullopt;
    output_ = at::scaled_dot_product_attention(inputs_[0].transpose(1, 2), inputs_[1].transpose(1, 2),
                                               inputs_[2].transpose(1, 2), bias, /*dropout_p=*/0, /*is_causal=*/!bias,
                                               /*scale=*/std::nullopt, grouped_);
  }
  void backward() {
    torch::autograd::grad({output_}, inputs_, {gradient_});
    output_.reset();
  }

 private:
  bool grouped_;
  std::vector<at::Tensor> inputs_;
  at::Tensor gradient_, output_;
};

struct Layer {
  Layer(const Trunk& trunk, std::int64_t batch, std::int64_t seq_length, const at::TensorOptions& options)
      : qkv(batch * seq_length, trunk.hidden_size, trunk.qkv_size(), options),
        attention(trunk, batch, seq_length, options),
        o(batch * seq_length, trunk.hidden_size, trunk.hidden_size, options),
        gate_up(batch * seq_length, trunk.hidden_size, 2 * trunk.intermediate_size, options),
        down(batch * seq_length, trunk.intermediate_size, trunk.hidden_size, options) {}

  Product qkv;
  AttentionProduct attention;
  Product o, gate_up, down;
};

// The head's products a chunk of tokens at a time, so that the logits of a whole batch need not exist.
class Head {
 public:
  Head(const Trunk& trunk, std::int64_t rows, const at::TensorOptions& options)
      : hidden_(random_matrix(rows, trunk.hidden_size, options)),
        hidden_gradient_(at::empty_like(hidden_)),
        weight_(random_matrix(trunk.vocab_size, trunk.hidden_size, options)),
        weight_gradient_(at::empty_like(weight_)),
        logits_(at::empty({std::min(rows, chunk_rows(trunk.vocab_size)), trunk.vocab_size}, options)),
        logits_gradient_(at::randn_like(logits_)) {}

  void forward_and_backward() {
    const std::int64_t rows = hidden_.size(0);
    for (std::int64_t begin = 0; begin < rows; begin += logits_.size(0)) {
      const std::int64_t count = std::min(logits_.size(0), rows - begin);
      const at::Tensor hidden = hidden_.narrow(0, begin, count);
      const at::Tensor gradient = logits_gradient_.narrow(0, 0, count);
      at::Tensor logits = logits_.narrow(0, 0, count);
      at::Tensor hidden_gradient = hidden_gradient_.narrow(0, begin, count);
      at::mm_out(logits, hidden, weight_.t());
      at::mm_out(hidden_gradient, gradient, weight_);
      at::addmm_out(weight_gradient_, weight_gradient_, gradient.t(), hidden, /*beta=*/begin == 0 ? 0 : 1);
    }
  }
  const at::Tensor& weight() const { return weight_; }

 private:
  static std::int64_t chunk_rows(std::int64_t vocab_size) {
    constexpr std::int64_t kElements = std::int64_t{1} << 26;
    return std::max<std::int64_t>(kElements / vocab_size, 1024);
  }

  at::Tensor hidden_, hidden_gradient_, weight_, weight_gradient_, logits_, logits_gradient_;
};

class BoundWorkload : public Workload {
 public:
  BoundWorkload(const train::RunConfig& config, c10::Device device, c10::ScalarType dtype)
      : BoundWorkload(trunk_of(config.model), config, at::TensorOptions(device).dtype(dtype)) {}

  void step() override {
    const at::NoGradGuard no_grad;
    for (Layer& layer : layers_) forward(layer);
    head_.forward_and_backward();
    for (Layer& layer : std::views::reverse(layers_)) backward(layer);
  }

  std::int64_t num_parameters() const override {
    std::int64_t count = head_.weight().numel();
    for (const Layer& layer : layers_) {
      for (const Product* product : {&layer.qkv, &layer.o, &layer.gate_up, &layer.down}) {
        count += product->weight.numel();
      }
    }
    return count;
  }

 private:
  BoundWorkload(const Trunk& trunk, const train::RunConfig& config, const at::TensorOptions& options)
      : head_(trunk, config.training.batch_size * config.data.seq_length, options) {
    const std::int64_t batch = config.training.batch_size, seq_length = config.data.seq_length;
    const std::int64_t rows = batch * seq_length;
    for (std::int64_t i = 0; i < trunk.num_hidden_layers; ++i) layers_.emplace_back(trunk, batch, seq_length, options);
    gradient_d_ = random_matrix(rows, trunk.hidden_size, options);
    gradient_f_ = at::empty({rows, trunk.intermediate_size}, options);
    gradient_2f_ = random_matrix(rows, 2 * trunk.intermediate_size, options);
    gradient_qkv_ = random_matrix(rows, trunk.qkv_size(), options);
    input_gradient_ = at::empty({rows, trunk.hidden_size}, options);
    if (trunk.window_size) {
      const at::Tensor hidden = input_gradient_.view({batch, seq_length, trunk.hidden_size});
      mask_ =
          nn::make_attention_context(
              hidden, {}, {},
              {.head_dim = trunk.head_dim(), .rope_theta = config.model.rope_theta, .window_size = trunk.window_size})
              .mask;
    }
  }

  void forward(Layer& layer) {
    layer.qkv.forward();
    {
      const at::AutoGradMode with_grad(true);
      layer.attention.forward(mask_);
    }
    layer.o.forward();
    layer.gate_up.forward();
    layer.down.forward();
  }

  void backward(Layer& layer) {
    layer.down.backward(gradient_d_, gradient_f_);
    layer.gate_up.backward(gradient_2f_, input_gradient_);
    layer.o.backward(gradient_d_, input_gradient_);
    layer.attention.backward();
    layer.qkv.backward(gradient_qkv_, input_gradient_);
  }

  std::vector<Layer> layers_;
  Head head_;
  at::Tensor gradient_d_, gradient_f_, gradient_2f_, gradient_qkv_, input_gradient_, mask_;
};

}  // namespace

std::unique_ptr<Workload> make_bound_workload(const train::RunConfig& config, c10::Device device,
                                              c10::ScalarType dtype) {
  return std::make_unique<BoundWorkload>(config, device, dtype);
}

ProductRate measure_product_rate(c10::Device device, c10::ScalarType dtype) {
  constexpr std::int64_t kCpuSize = 2048, kGpuSize = 8192;
  const at::NoGradGuard no_grad;
  const std::int64_t size = device.is_cpu() ? kCpuSize : kGpuSize;
  const auto options = at::TensorOptions(device).dtype(dtype);
  const at::Tensor a = random_matrix(size, size, options), b = random_matrix(size, size, options);
  at::Tensor product = at::empty({size, size}, options);
  at::mm_out(product, a, b);  // warms the library up
  synchronize(device);
  const Clock::time_point start = Clock::now();
  at::mm_out(product, a, b);
  synchronize(device);
  const auto n = static_cast<double>(size);
  return {size, 2 * n * n * n / seconds_since(start)};
}

}  // namespace satformer::bench
