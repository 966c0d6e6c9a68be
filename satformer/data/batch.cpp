#include "satformer/data/batch.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <vector>

#include "satformer/core/error.h"
#include "satformer/data/window.h"

namespace satformer::data {
namespace {

constexpr std::int64_t kIgnoreIndex = -100;
constexpr std::int64_t kPaddingId = 0;

// A batch that is filled row by row.
class BatchBuilder {
 public:
  BatchBuilder(std::int64_t rows, const BatchOptions& options) : options_(options) {
    require(rows >= 0, "batch: number of windows must not be negative, got {}", rows);
    require(options.seq_length >= 1, "batch: seq_length must be at least 1, got {}", options.seq_length);
    require(!options.document_mask || options.end_of_text_id.has_value(),
            "document_mask needs the end-of-text id; the data has no dataset.json that names it");
    const auto make = [&] { return at::empty({rows, options.seq_length}, at::kLong); };
    batch_.input_ids = make();
    batch_.targets = make();
    if (options.document_mask) {
      batch_.document_ids = make();
      batch_.positions = make();
    }
    window_.resize(static_cast<std::size_t>(options.seq_length) + 1);
  }

  // Inputs are tokens [start, start + T), targets the tokens one further on, as far as the split has them.
  void add_window(const TokenDataset& dataset, std::int64_t start) {
    const std::int64_t length = options_.seq_length;
    const std::int64_t available = std::min(length + 1, dataset.num_tokens() - start);
    const std::span<std::int64_t> tokens(window_);
    dataset.read(start, tokens.first(static_cast<std::size_t>(available)));
    const std::int64_t predicted = available - 1;
    std::int64_t* inputs = row_of(batch_.input_ids);
    std::int64_t* targets = row_of(batch_.targets);
    std::fill(std::copy_n(tokens.begin(), predicted, inputs), inputs + length, kPaddingId);
    std::fill(std::copy_n(tokens.begin() + 1, predicted, targets), targets + length, kIgnoreIndex);
    if (options_.document_mask) number_documents(inputs, row_of(batch_.document_ids), row_of(batch_.positions));
    ++row_;
  }

  Batch finish() { return std::move(batch_); }

 private:
  std::int64_t* row_of(const at::Tensor& tensor) const {
    return tensor.data_ptr<std::int64_t>() + row_ * options_.seq_length;
  }

  // The end-of-text id belongs to the document that it ends.
  void number_documents(const std::int64_t* inputs, std::int64_t* document_ids, std::int64_t* positions) const {
    std::int64_t document = 0, position = 0;
    for (std::int64_t t = 0; t < options_.seq_length; ++t) {
      document_ids[t] = document;
      positions[t] = position++;
      if (inputs[t] == *options_.end_of_text_id) {
        ++document;
        position = 0;
      }
    }
  }

  BatchOptions options_;
  Batch batch_;
  std::vector<std::int64_t> window_;
  std::int64_t row_ = 0;
};

}  // namespace

Batch training_batch(const TokenDataset& dataset, const WindowSampler& sampler, std::int64_t first_sample,
                     std::int64_t count, const BatchOptions& options) {
  BatchBuilder builder(count, options);
  for (std::int64_t i = 0; i < count; ++i) builder.add_window(dataset, sampler.window_start(first_sample + i));
  return builder.finish();
}

std::int64_t num_evaluation_windows(const TokenDataset& dataset, std::int64_t seq_length) {
  require(seq_length >= 1, "seq_length must be at least 1, got {}", seq_length);
  require_window(fmt::format("{}: the split", dataset.name()), dataset.num_tokens(), seq_length);
  const std::int64_t targets = dataset.num_tokens() - 1;
  return (targets + seq_length - 1) / seq_length;
}

Batch evaluation_batch(const TokenDataset& dataset, std::int64_t first_window, std::int64_t count,
                       const BatchOptions& options) {
  const std::int64_t windows = num_evaluation_windows(dataset, options.seq_length);
  require(first_window >= 0 && count >= 0 && first_window <= windows && count <= windows - first_window,
          "{}: evaluation windows [{}, {}) are outside the split's {}", dataset.name(), first_window,
          first_window + count, windows);
  BatchBuilder builder(count, options);
  for (std::int64_t i = 0; i < count; ++i) builder.add_window(dataset, (first_window + i) * options.seq_length);
  return builder.finish();
}

}  // namespace satformer::data
