#include "satformer/train/gradients.h"

#include <ATen/ops/zeros.h>

#include <algorithm>

#include "satformer/core/device.h"
#include "satformer/core/precision.h"

namespace satformer::train {
namespace {

models::LossSum forward(models::LanguageModel& model, const data::Batch& batch, c10::Device device,
                        c10::ScalarType dtype) {
  const AutocastGuard autocast(device, dtype);
  return model.loss({.input_ids = to_device(batch.input_ids, device),
                     .positions = to_device(batch.positions, device),
                     .document_ids = batch.document_ids},
                    batch.targets);
}

}  // namespace

LossTotal accumulate_gradients(models::LanguageModel& model, const TrainingData& data, const SampleRange& samples,
                               std::int64_t micro_batch_size, c10::Device device, c10::ScalarType dtype) {
  LossTotal total;
  at::Tensor loss_sum = at::zeros({}, at::TensorOptions(device).dtype(at::kDouble));
  for (std::int64_t done = 0; done < samples.count; done += micro_batch_size) {
    const std::int64_t count = std::min(micro_batch_size, samples.count - done);
    const data::Batch batch = data::training_batch(data.dataset, data.sampler, samples.first + done, count, data.batch);
    const models::LossSum loss = forward(model, batch, device, dtype);
    loss.loss_sum.backward();
    loss_sum += loss.loss_sum.detach();
    total.num_targets += loss.num_targets;
  }
  total.loss_sum = loss_sum.item<double>();
  return total;
}

}  // namespace satformer::train
