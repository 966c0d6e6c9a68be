#pragma once
// metrics.jsonl: one JSON object a line, flushed line by line. Three kinds of lines:
//   {"step", "tokens", "loss", "lr", "grad_norm", "tokens_per_second", "seconds"}    after every step
//   {"step", "tokens", "lr", "skipped": true, "tokens_per_second", "seconds"}        a step without an update
//   {"step", "val_loss", "val_perplexity", "val_tokens"}                             after a validation
// Losses are mean nats a target token; `tokens` counts target tokens since the run's first step. `tokens_per_second`
// and `seconds` (since this process began to train) are the only fields that may differ between equal runs.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "satformer/eval/loss_total.h"
#include "satformer/train/tensorboard.h"

namespace satformer::train {

struct StepMetrics {
  std::int64_t step = 0;  // 1 after the first update
  std::int64_t tokens = 0;
  double loss = 0.0, learning_rate = 0.0, grad_norm = 0.0;  // grad_norm before clipping
  bool skipped = false;                                     // then loss and grad_norm say nothing
  double tokens_per_second = 0.0, seconds = 0.0;
};

struct ValidationMetrics {
  std::int64_t step = 0;
  double loss = 0.0;
  std::int64_t tokens = 0;

  double perplexity() const { return eval::perplexity(loss); }
};

class MetricsWriter {
 public:
  // Opens DIRECTORY/metrics.jsonl and, with `tensorboard`, a new event file under DIRECTORY/tensorboard. `resume_step`:
  // the run goes on after that step; lines of later steps, and a half-written last line, are cut off first.
  // Without it the file must not exist yet.
  MetricsWriter(const std::filesystem::path& directory, bool tensorboard, std::optional<std::int64_t> resume_step = {});

  void write(const StepMetrics& metrics);
  void write(const ValidationMetrics& metrics);
  // Flushes metrics.jsonl to the disk.
  void sync();

 private:
  void write_line(const std::string& line);

  std::filesystem::path path_;
  std::ofstream file_;
  std::optional<EventWriter> events_;
};

// The lines of a metrics file's text up to `step`; a last line without line end is cut. Error names `source` and the
// line of anything else that is not a metrics line.
std::string metrics_until(const std::string& text, std::int64_t step, const std::string& source);

// Rewrites a metrics file (atomically) as metrics_until has it. Does nothing when there is no file.
void cut_metrics_after(const std::filesystem::path& path, std::int64_t step);

}  // namespace satformer::train
