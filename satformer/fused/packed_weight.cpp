#include "satformer/fused/packed_weight.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/as_strided.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

namespace satformer::fused {

at::Tensor PackedWeight::weight(at::ScalarType dtype) {
  // Moving a model to another device or dtype gives each parameter a storage of its own.
  if (!adjacent()) make_adjacent();
  at::Tensor own = whole();
  if (own.scalar_type() == dtype) return own;
  const bool current = cast_.defined() && cast_.scalar_type() == dtype && cast_source_ == own.const_data_ptr() &&
                       cast_versions_ == versions();
  if (!current) {
    cast_ = own.to(dtype);
    cast_versions_ = versions();
    cast_source_ = own.const_data_ptr();
  }
  return cast_;
}

at::Tensor PackedWeight::bias(at::ScalarType dtype) const {
  if (!has_bias()) return {};
  std::vector<at::Tensor> parts;
  for (const LinearParameters& layer : layers_) {
    const at::Tensor& weight = layer.weight;
    parts.push_back(layer.bias.defined() ? layer.bias.detach() : at::zeros({weight.size(0)}, weight.options()));
  }
  return at::cat(parts).to(dtype);
}

std::vector<at::Tensor> PackedWeight::parameters() const {
  std::vector<at::Tensor> result;
  for (const LinearParameters& layer : layers_) result.push_back(layer.weight);
  for (const LinearParameters& layer : layers_) {
    if (layer.bias.defined()) result.push_back(layer.bias);
  }
  return result;
}

std::vector<at::Tensor> PackedWeight::split_gradients(const at::Tensor& weight, const at::Tensor& bias) const {
  std::vector<at::Tensor> result;
  std::int64_t row = 0;
  for (const LinearParameters& layer : layers_) {
    result.push_back(weight.narrow(0, row, layer.weight.size(0)));
    row += layer.weight.size(0);
  }
  row = 0;
  for (const LinearParameters& layer : layers_) {
    if (layer.bias.defined()) result.push_back(bias.narrow(0, row, layer.bias.size(0)));
    row += layer.weight.size(0);
  }
  return result;
}

bool PackedWeight::has_bias() const {
  for (const LinearParameters& layer : layers_) {
    if (layer.bias.defined()) return true;
  }
  return false;
}

bool PackedWeight::adjacent() const {
  const at::Tensor& first = layers_.front().weight;
  std::int64_t offset = first.storage_offset();
  for (const LinearParameters& layer : layers_) {
    const at::Tensor& weight = layer.weight;
    if (!weight.is_contiguous() || !weight.storage().is_alias_of(first.storage())) return false;
    if (weight.scalar_type() != first.scalar_type() || weight.storage_offset() != offset) return false;
    offset += weight.numel();
  }
  return true;
}

void PackedWeight::make_adjacent() {
  const at::NoGradGuard no_grad;
  std::int64_t rows = 0;
  for (const LinearParameters& layer : layers_) rows += layer.weight.size(0);
  const at::Tensor& first = layers_.front().weight;
  const at::Tensor storage = at::empty({rows, first.size(1)}, first.options().requires_grad(false));
  std::int64_t row = 0;
  for (LinearParameters& layer : layers_) {
    at::Tensor& weight = layer.weight;
    const at::Tensor part = storage.narrow(0, row, weight.size(0));
    part.copy_(weight);
    row += weight.size(0);
    weight.set_data(part);
  }
}

at::Tensor PackedWeight::whole() const {
  std::int64_t rows = 0;
  for (const LinearParameters& layer : layers_) rows += layer.weight.size(0);
  const at::Tensor first = layers_.front().weight.detach();
  return at::as_strided(first, {rows, first.size(1)}, {first.size(1), 1}, first.storage_offset());
}

std::vector<std::uint32_t> PackedWeight::versions() const {
  std::vector<std::uint32_t> result;
  for (const LinearParameters& layer : layers_) result.push_back(static_cast<std::uint32_t>(layer.weight._version()));
  return result;
}

}  // namespace satformer::fused
