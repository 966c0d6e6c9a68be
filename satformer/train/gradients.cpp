#include "satformer/train/gradients.h"

#include <algorithm>

namespace satformer::train {

eval::LossTotal accumulate_gradients(ForwardBackward& forward_backward, const TrainingData& data,
                                     const SampleRange& samples, std::int64_t micro_batch_size,
                                     const std::function<void()>& before_last) {
  eval::LossTotal total;
  forward_backward.loss_sum().zero_();
  for (std::int64_t done = 0; done < samples.count; done += micro_batch_size) {
    const std::int64_t count = std::min(micro_batch_size, samples.count - done);
    if (before_last && done + count == samples.count) before_last();
    const data::Batch batch = data::training_batch(data.dataset, data.sampler, samples.first + done, count, data.batch);
    total.num_targets += forward_backward.run(batch);
  }
  total.loss_sum = forward_backward.loss_sum().item<double>();
  return total;
}

}  // namespace satformer::train
