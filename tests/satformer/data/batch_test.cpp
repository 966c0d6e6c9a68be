#include "satformer/data/batch.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>

#include "satformer/data/shard_writer.h"
#include "tests/satformer/data/support.h"

#include "tests/catch.h"

namespace satformer::data {
namespace {

using testing::contains;
using testing::error_of;
using testing::TemporaryFolder;
using Row = std::vector<std::int64_t>;

TokenDataset dataset_of(const TemporaryFolder& folder, const std::vector<std::int32_t>& ids,
                        std::int64_t shard_tokens) {
  SplitWriter writer(folder.path(), "val", 1000, shard_tokens);
  writer.write(ids);
  writer.finish();
  return TokenDataset::open(folder.path(), "val", {.vocab_size = 1000, .verify = true});
}

std::vector<std::int32_t> counting(std::int32_t count) {
  std::vector<std::int32_t> ids;
  for (std::int32_t i = 0; i < count; ++i) ids.push_back(i);
  return ids;
}

Row row_of(const at::Tensor& tensor, std::int64_t row) {
  const std::int64_t* begin = tensor.data_ptr<std::int64_t>() + row * tensor.size(1);
  return {begin, begin + tensor.size(1)};
}

}  // namespace

TEST_CASE("Targets are the next tokens", "[data][batch]") {
  const TemporaryFolder folder;
  const TokenDataset dataset = dataset_of(folder, counting(101), 13);
  const WindowSampler sampler(dataset.num_tokens(), 10, 1);
  const Batch batch = training_batch(dataset, sampler, 3, 5, {.seq_length = 10});
  CHECK(batch.input_ids.sizes() == at::IntArrayRef({5, 10}));
  CHECK_FALSE(batch.document_ids.defined());
  CHECK_FALSE(batch.positions.defined());
  for (std::int64_t row = 0; row < 5; ++row) {
    const Row inputs = row_of(batch.input_ids, row), targets = row_of(batch.targets, row);
    for (std::int64_t t = 0; t < 10; ++t) {
      CHECK(inputs[t] == sampler.window_start(3 + row) + t);
      CHECK(targets[t] == inputs[t] + 1);
    }
  }
}

TEST_CASE("Batches do not depend on how the samples are split", "[data][batch]") {
  const TemporaryFolder folder;
  const TokenDataset dataset = dataset_of(folder, counting(500), 77);
  const WindowSampler sampler(dataset.num_tokens(), 7, 9);
  const BatchOptions options{.seq_length = 7};
  const Batch whole = training_batch(dataset, sampler, 0, 12, options);
  for (const std::int64_t step : {1, 2, 3, 4, 6}) {
    std::vector<at::Tensor> inputs, targets;
    for (std::int64_t first = 0; first < 12; first += step) {
      const Batch part = training_batch(dataset, sampler, first, step, options);
      inputs.push_back(part.input_ids);
      targets.push_back(part.targets);
    }
    CHECK(at::equal(at::cat(inputs), whole.input_ids));
    CHECK(at::equal(at::cat(targets), whole.targets));
  }
}

TEST_CASE("Evaluation predicts every token but the first once", "[data][batch]") {
  for (const std::int32_t count : {11, 20, 21, 22, 35}) {
    const TemporaryFolder folder;
    const TokenDataset dataset = dataset_of(folder, counting(count), 8);
    const std::int64_t windows = num_evaluation_windows(dataset, 10);
    CHECK(windows == (count - 1 + 9) / 10);
    const Batch batch = evaluation_batch(dataset, 0, windows, {.seq_length = 10});
    Row predicted;
    for (std::int64_t row = 0; row < windows; ++row) {
      const Row inputs = row_of(batch.input_ids, row), targets = row_of(batch.targets, row);
      for (std::int64_t t = 0; t < 10; ++t) {
        if (targets[t] == -100) {
          CHECK(inputs[t] == 0);
          continue;
        }
        CHECK(inputs[t] == targets[t] - 1);
        predicted.push_back(targets[t]);
      }
    }
    REQUIRE(static_cast<std::int32_t>(predicted.size()) == count - 1);
    for (std::int32_t i = 1; i < count; ++i) CHECK(predicted[i - 1] == i);
  }
}

TEST_CASE("A document mask numbers documents and restarts positions", "[data][batch]") {
  const TemporaryFolder folder;
  // End of text is 2; the window begins in the middle of a document and holds an empty one.
  const TokenDataset dataset = dataset_of(folder, {5, 6, 2, 7, 2, 2, 8, 9, 2, 4}, 100);
  const Batch batch = evaluation_batch(dataset, 0, 1, {.seq_length = 9, .document_mask = true, .end_of_text_id = 2});
  CHECK(row_of(batch.document_ids, 0) == Row{0, 0, 0, 1, 1, 2, 3, 3, 3});
  CHECK(row_of(batch.positions, 0) == Row{0, 1, 2, 0, 1, 0, 0, 1, 2});
  CHECK(row_of(batch.targets, 0) == Row{6, 2, 7, 2, 2, 8, 9, 2, 4});  // the first of the next document too
  CHECK(contains(error_of([&] { evaluation_batch(dataset, 0, 1, {.seq_length = 9, .document_mask = true}); }),
                 "document_mask needs the end-of-text id"));
}

TEST_CASE("Evaluation of too small a split is refused", "[data][batch]") {
  const TemporaryFolder folder;
  const TokenDataset dataset = dataset_of(folder, counting(50), 100);
  CHECK(contains(error_of([&] { num_evaluation_windows(dataset, 256); }),
                 "val: the split has 50 tokens; one window of seq_length 256 needs 257"));
  CHECK(contains(error_of([&] { evaluation_batch(dataset, 4, 2, {.seq_length = 10}); }), "[4, 6) are outside"));
}

}  // namespace satformer::data
