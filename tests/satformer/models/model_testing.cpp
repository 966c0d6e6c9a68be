#include "tests/satformer/models/model_testing.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <cmath>

namespace satformer::testing {
namespace {

using models::ModelConfig;
using models::ModelInput;

at::Tensor norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  return x / ((x * x).mean(-1, true) + eps).sqrt() * weight;
}

// [B, T, hd, hd]: the matrix that rotates a head at each position.
at::Tensor rotations(const ModelConfig& config, const at::Tensor& positions) {
  const std::int64_t hd = config.hidden_size / config.num_heads, half = hd / 2;
  at::Tensor result = at::zeros({positions.size(0), positions.size(1), hd, hd}, at::kDouble);
  auto write = result.accessor<double, 4>();
  const auto place = positions.accessor<std::int64_t, 2>();
  for (std::int64_t b = 0; b < positions.size(0); ++b) {
    for (std::int64_t t = 0; t < positions.size(1); ++t) {
      for (std::int64_t j = 0; j < half; ++j) {
        const double frequency = std::pow(config.rope_theta, -2.0 * static_cast<double>(j) / static_cast<double>(hd));
        const double angle = static_cast<double>(place[b][t]) * frequency;
        write[b][t][j][j] = write[b][t][half + j][half + j] = std::cos(angle);
        write[b][t][j][half + j] = -std::sin(angle);
        write[b][t][half + j][j] = std::sin(angle);
      }
    }
  }
  return result;
}

// [B, T, T], true where query t may see key s.
at::Tensor visibility(const ModelConfig& config, const ModelInput& input) {
  const std::int64_t B = input.input_ids.size(0), T = input.input_ids.size(1);
  at::Tensor visible = at::zeros({B, T, T}, at::kBool);
  auto write = visible.accessor<bool, 3>();
  for (std::int64_t b = 0; b < B; ++b) {
    for (std::int64_t t = 0; t < T; ++t) {
      for (std::int64_t s = 0; s <= t; ++s) {
        const bool near = !config.window_size || t - s < *config.window_size;
        const bool together = !input.document_ids.defined() || input.document_ids[b][t].item<std::int64_t>() ==
                                                                   input.document_ids[b][s].item<std::int64_t>();
        write[b][t][s] = near && together;
      }
    }
  }
  return visible;
}

at::Tensor gate(const std::string& name, const at::Tensor& logits) {
  const double heads = static_cast<double>(logits.size(-1));
  at::Tensor sigmoid = 1 / (1 + at::exp(-logits));
  const at::Tensor shares = at::exp(logits) / at::exp(logits).sum(-1, true);
  if (name == "relu") return logits * logits.gt(0);
  if (name == "sigmoid") return sigmoid;
  if (name == "softmax") return shares * heads;
  if (name == "softmax_sigmoid") return shares * sigmoid * heads;
  if (name == "tanh") return at::tanh(logits);
  return logits;
}

class Pass {
 public:
  Pass(const ModelConfig& config, const Parameters& parameters, const ModelInput& input)
      : config_(config), parameters_(parameters), input_(input), visible_(visibility(config, input)) {
    const std::int64_t B = input.input_ids.size(0), T = input.input_ids.size(1);
    rotations_ = rotations(config, input.positions.defined() ? input.positions : at::arange(T).expand({B, T}));
  }

  ExpectedPass run() {
    ExpectedPass result;
    at::Tensor x;
    if (config_.architecture == "muddformer") {
      x = run_multiway(result);
    } else if (config_.architecture == "hyperconnections") {
      x = run_streams(result);
    } else {
      x = run_blocks(result);
    }
    result.hidden = norm(x, parameter("model.norm.weight"), config_.norm_eps);
    const char* head = config_.tie_word_embeddings ? "model.embeddings.weight" : "lm_head.weight";
    result.logits = result.hidden.matmul(parameter(head).t());
    return result;
  }

 private:
  const at::Tensor& parameter(const std::string& name) const { return parameters_.at(name); }

  static std::string block_name(std::int64_t i) { return "model.layers." + std::to_string(i) + "."; }

  at::Tensor block_norm(const std::string& name, const at::Tensor& x) const {
    return norm(x, parameter(name + ".weight"), config_.norm_eps);
  }

  at::Tensor mlp(const std::string& block, const at::Tensor& x) const {
    const at::Tensor u = block_norm(block + "mlp_norm", x);
    const at::Tensor gated = u.matmul(parameter(block + "mlp.gate_proj.weight").t());
    const at::Tensor up = u.matmul(parameter(block + "mlp.up_proj.weight").t());
    return (gated / (1 + at::exp(-gated)) * up).matmul(parameter(block + "mlp.down_proj.weight").t());
  }

  at::Tensor attention(std::int64_t i, const at::Tensor& u, ExpectedPass& result) {
    return attention(i, block_name(i) + "attn.", u, u, u, result);
  }

  // Transformer, ResFormer, SATFormer and, with its averages, DenseFormer.
  at::Tensor run_blocks(ExpectedPass& result) {
    at::Tensor x = lookup();
    std::vector<at::Tensor> outputs{x};
    for (std::int64_t i = 0; i < config_.num_hidden_layers; ++i) {
      const std::string block = block_name(i);
      x = x + attention(i, block_norm(block + "attn_norm", x), result);
      x = x + mlp(block, x);
      result.layers.push_back(x);
      outputs.push_back(x);
      if (config_.architecture != "denseformer" || (i + 1) % config_.dwa_period != 0) continue;
      const at::Tensor& alpha = parameter("model.dwa_modules.alphas." + std::to_string(i) + ".weight");
      std::int64_t entry = alpha.size(1) - 1;
      x = at::zeros_like(x);
      for (std::int64_t j = i + 1; j >= 0; j -= config_.dwa_dilation, --entry) {
        x = x + alpha[0][entry] * outputs[static_cast<std::size_t>(j)];
      }
    }
    return x;
  }

  // MUDDFormer.
  at::Tensor run_multiway(ExpectedPass& result) {
    std::vector<at::Tensor> outputs{lookup()}, streams(4, outputs[0]);
    for (std::int64_t i = 0; i < config_.num_hidden_layers; ++i) {
      const std::string block = block_name(i);
      const at::Tensor h = streams[3] + attention(i, block + "attn.", block_norm(block + "attn_norm_q", streams[0]),
                                                  block_norm(block + "attn_norm_k", streams[1]),
                                                  block_norm(block + "attn_norm_v", streams[2]), result);
      outputs.push_back(h + mlp(block, h));
      result.layers.push_back(outputs.back());
      streams = aggregate(block + "da.", outputs, i + 1 < config_.num_hidden_layers ? 4 : 1);
    }
    return streams.back();
  }

  std::vector<at::Tensor> aggregate(const std::string& name, const std::vector<at::Tensor>& outputs,
                                    std::int64_t ways) const {
    const at::Tensor& x = outputs.back();
    const auto sources = static_cast<std::int64_t>(outputs.size());
    const at::Tensor inner =
        norm(x, at::ones({1}, at::kDouble), config_.norm_eps).matmul(parameter(name + "w1.weight").t());
    const at::Tensor weights =
        (inner * 0.5 * (1 + at::erf(inner / std::sqrt(2.0)))).matmul(parameter(name + "w2.weight").t());
    std::vector<at::Tensor> streams;
    for (std::int64_t c = 0; c < ways; ++c) {
      at::Tensor sum = at::zeros_like(x);
      for (std::int64_t j = 0; j < sources; ++j) {
        const at::Tensor weight = weights.select(-1, c * sources + j) + parameter(name + "static_weight")[c][j];
        at::Tensor source = outputs[static_cast<std::size_t>(j)];
        if (config_.use_pre_post_da_norm) source = block_norm(name + "pre_da_norms." + std::to_string(j), source);
        sum = sum + weight.unsqueeze(-1) * source;
      }
      if (config_.use_pre_post_da_norm) sum = block_norm(name + "post_da_norms." + std::to_string(c), sum) + x;
      streams.push_back(sum);
    }
    return streams;
  }

  // HyperConnections.
  at::Tensor run_streams(ExpectedPass& result) {
    std::vector<at::Tensor> streams(static_cast<std::size_t>(config_.expansion_rate), lookup());
    for (std::int64_t i = 0; i < config_.num_hidden_layers; ++i) {
      const std::string block = block_name(i);
      streams = connect(block + "attn_hc.", streams,
                        [&](const at::Tensor& x) { return attention(i, block_norm(block + "attn_norm", x), result); });
      streams = connect(block + "mlp_hc.", streams, [&](const at::Tensor& x) { return mlp(block, x); });
      result.layers.push_back(sum(streams));
    }
    return sum(streams);
  }

  static at::Tensor sum(const std::vector<at::Tensor>& streams) { return at::stack(streams).sum(0); }

  at::Tensor bounded(const at::Tensor& x) const { return config_.use_tanh ? at::tanh(x) : x; }

  at::Tensor stream_norm(const std::string& name, const at::Tensor& x) const {
    if (config_.hc_norm_type == "rms") return norm(x, parameter(name + "norm.weight"), 1.1920929e-07);
    const at::Tensor centred = x - x.mean(-1, true);
    return norm(centred, parameter(name + "norm.weight"), 1e-5) + parameter(name + "norm.bias");
  }

  template <typename Layer>
  std::vector<at::Tensor> connect(const std::string& name, const std::vector<at::Tensor>& streams,
                                  const Layer& layer) const {
    const std::size_t n = streams.size();
    std::vector<at::Tensor> mixed(n + 1, at::zeros_like(streams[0])), beta(n);
    for (std::size_t s = 0; s < n; ++s) {
      const auto row = static_cast<std::int64_t>(s);
      at::Tensor alpha = parameter(name + "static_alpha")[row];
      beta[s] = parameter(name + "static_beta")[row];
      if (config_.use_dynamic_hc) {
        const at::Tensor u = stream_norm(name, streams[s]);
        alpha =
            alpha + parameter(name + "dynamic_alpha_scale") * bounded(u.matmul(parameter(name + "dynamic_alpha_proj")));
        beta[s] =
            beta[s] + parameter(name + "dynamic_beta_scale") * bounded(u.matmul(parameter(name + "dynamic_beta_proj")));
      }
      for (std::size_t m = 0; m <= n; ++m) {
        mixed[m] = mixed[m] + alpha.select(-1, static_cast<std::int64_t>(m)).unsqueeze(-1) * streams[s];
      }
    }
    const at::Tensor out = layer(mixed[0]);
    std::vector<at::Tensor> result;
    for (std::size_t s = 0; s < n; ++s) result.push_back(beta[s].unsqueeze(-1) * out + mixed[s + 1]);
    return result;
  }

  // One-hot rows times E; the pad row without gradient.
  at::Tensor lookup() const {
    const at::Tensor& table = parameter("model.embeddings.weight");
    at::Tensor hot = at::zeros({input_.input_ids.size(0), input_.input_ids.size(1), config_.vocab_size}, at::kDouble);
    hot.scatter_(2, input_.input_ids.unsqueeze(2), 1.0);
    if (!config_.pad_token_id) return hot.matmul(table);
    at::Tensor is_pad = at::zeros({config_.vocab_size, 1}, at::kDouble);
    is_pad[*config_.pad_token_id] = 1.0;
    return hot.matmul(table * (1 - is_pad) + table.detach() * is_pad);
  }

  at::Tensor project(const std::string& name, const at::Tensor& u, std::int64_t heads) const {
    at::Tensor y = u.matmul(parameter(name + ".weight").t());
    if (parameters_.contains(name + ".bias")) y = y + parameter(name + ".bias");
    return y.reshape({u.size(0), u.size(1), heads, config_.hidden_size / config_.num_heads});
  }

  at::Tensor attention(std::int64_t i, const std::string& name, const at::Tensor& uq, const at::Tensor& uk,
                       const at::Tensor& uv, ExpectedPass& result) {
    at::Tensor q = project(name + "q_proj", uq, config_.num_heads);
    at::Tensor k = project(name + "k_proj", uk, config_.num_kv_heads);
    at::Tensor v = project(name + "v_proj", uv, config_.num_kv_heads);
    if (i == 0) first_values_ = v;
    v = mix(i, name + "value_residual_mixing.", uv, v, result);
    if (config_.qk_norm) {
      q = norm(q, parameter(name + "q_norm.weight"), config_.qk_norm_eps);
      k = norm(k, parameter(name + "k_norm.weight"), config_.qk_norm_eps);
    }
    q = rotations_.unsqueeze(2).matmul(q.unsqueeze(-1)).squeeze(-1);
    k = rotations_.unsqueeze(2).matmul(k.unsqueeze(-1)).squeeze(-1);
    std::vector<at::Tensor> heads;
    for (std::int64_t h = 0; h < config_.num_heads; ++h) {
      const std::int64_t j = h / (config_.num_heads / config_.num_kv_heads);
      const at::Tensor scores =
          q.select(2, h).matmul(k.select(2, j).transpose(1, 2)) / std::sqrt(static_cast<double>(q.size(-1)));
      const at::Tensor weights = at::exp(scores - scores.detach().max()) * visible_;
      heads.push_back((weights / weights.sum(-1, true)).matmul(v.select(2, j)));
    }
    return at::cat(heads, -1).matmul(parameter(name + "o_proj.weight").t());
  }

  bool mixes(std::int64_t i) const {
    const std::int64_t L = config_.num_hidden_layers;
    if (config_.architecture != "satformer" && config_.architecture != "resformer") return false;
    if (!config_.use_value_residual || i == 0) return false;
    if (config_.value_residual_last_k && i < L - *config_.value_residual_last_k) return false;
    const bool sparse = config_.architecture == "resformer" && config_.value_residual_variant == "sparse";
    return !sparse || static_cast<double>(i) >= static_cast<double>(L) - std::ceil(static_cast<double>(L) / 3);
  }

  at::Tensor mix(std::int64_t i, const std::string& name, const at::Tensor& u, const at::Tensor& v,
                 ExpectedPass& result) {
    if (!mixes(i)) return v;
    if (config_.architecture == "satformer") {
      at::Tensor logits = u.matmul(parameter(name + "alpha_proj.weight").t());
      if (config_.value_residual_proj_bias) logits = logits + parameter(name + "alpha_proj.bias");
      result.alpha.push_back(gate(config_.value_residual_gate, logits));
      return v + result.alpha.back().unsqueeze(-1) * first_values_;
    }
    if (config_.value_residual_variant == "identity") return 0.5 * first_values_ + 0.5 * v;
    if (config_.value_residual_variant == "constant") return 2.0 * first_values_ + v;
    if (config_.value_residual_variant == "sparse") return 5.0 * first_values_ + v;
    const at::Tensor weights = at::exp(parameter("model.lambda_manager.lambda_logits"));
    const at::Tensor lambda1 = parameter("model.lambda_manager.lambda_scale") * weights[i - 1] / weights.sum();
    return lambda1 * first_values_ + parameter(name + "lambda2") * v;
  }

  const ModelConfig& config_;
  const Parameters& parameters_;
  const ModelInput& input_;
  at::Tensor visible_, rotations_, first_values_;
};

}  // namespace

models::ModelConfig small_config(const std::string& architecture, const nlohmann::json& keys) {
  nlohmann::json values{{"vocab_size", 13}, {"hidden_size", 16},       {"num_hidden_layers", 4},     {"num_heads", 4},
                        {"qk_norm", true},  {"intermediate_size", 24}, {"tie_word_embeddings", true}};
  if (keys.is_object()) values.update(keys);
  return models::model_config_from_json(values, architecture, "test");
}

std::shared_ptr<models::LanguageModel> random_model(const models::ModelConfig& config, at::ScalarType dtype,
                                                    std::uint64_t seed) {
  auto model = models::make_model(config, seed);
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  const at::NoGradGuard no_grad;
  for (at::Tensor& parameter : model->parameters()) {
    parameter.add_(at::randn(parameter.sizes(), generator, at::kFloat).mul_(0.3));
  }
  model->to(dtype);
  return model;
}

at::Tensor random_ids(const models::ModelConfig& config, std::int64_t batch, std::int64_t length, std::uint64_t seed) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return at::randint(0, config.vocab_size, {batch, length}, generator, at::TensorOptions(at::kLong));
}

models::ModelInput plain_input(const models::ModelConfig& config, std::int64_t length) {
  return {random_ids(config, 2, length), {}, {}};
}

models::ModelInput document_input(const models::ModelConfig& config) {
  ModelInput input = plain_input(config, 10);
  input.document_ids =
      at::tensor({0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 2, 2, 2}, at::kLong).view({2, 10});
  input.positions = at::tensor({0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 0, 0, 1, 2, 3, 4, 5, 0, 1, 2}, at::kLong).view({2, 10});
  return input;
}

Parameters double_parameters(models::LanguageModel& model) {
  Parameters result;
  for (const auto& item : model.named_parameters()) {
    result[item.key()] = item.value().detach().to(at::kDouble, false, true).requires_grad_(true);
  }
  return result;
}

ExpectedPass expected_pass(const models::ModelConfig& config, const Parameters& parameters,
                           const models::ModelInput& input) {
  return Pass(config, parameters, input).run();
}

at::Tensor expected_loss_sum(const at::Tensor& logits, const at::Tensor& targets) {
  const at::Tensor log_shares = logits - at::logsumexp(logits, -1, true);
  const at::Tensor counted = targets.ne(-100);
  const at::Tensor picked = log_shares.gather(-1, (targets * counted).unsqueeze(-1)).squeeze(-1);
  return -(picked * counted).sum();
}

double relative_difference(const at::Tensor& a, const at::Tensor& b) {
  if (b.numel() == 0) return 0;
  const auto difference = (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
  return difference == 0 ? 0 : difference / b.abs().max().item<double>();
}

}  // namespace satformer::testing
