#include "satformer/train/gradients.h"

#include <algorithm>

namespace satformer::train {

LossTotal accumulate_gradients(ForwardBackward& micro_batch, const TrainingData& data, const SampleRange& samples,
                               std::int64_t micro_batch_size, const std::function<void()>& before_last) {
  LossTotal total;
  micro_batch.loss_sum().zero_();
  for (std::int64_t done = 0; done < samples.count; done += micro_batch_size) {
    const std::int64_t count = std::min(micro_batch_size, samples.count - done);
    if (before_last && done + count == samples.count) before_last();
    total.num_targets +=
        micro_batch.run(data::training_batch(data.dataset, data.sampler, samples.first + done, count, data.batch));
  }
  total.loss_sum = micro_batch.loss_sum().item<double>();
  return total;
}

}  // namespace satformer::train
