#include "satformer/train/metrics.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "satformer/checkpoint/layout.h"
#include "satformer/core/error.h"
#include "satformer/io/files.h"
#include "satformer/io/json_fields.h"
#include "satformer/io/strict_json.h"

namespace satformer::train {
namespace {

// The step of one line.
std::int64_t step_of(const std::string& line, const std::string& source, std::int64_t number) {
  const std::string where = fmt::format("{}: line {} is no metrics line", source, number);
  const nlohmann::json object = parse_strict_json(line, where);
  return JsonFields(object, where).integer("step");
}

}  // namespace

std::string metrics_until(const std::string& text, std::int64_t step, const std::string& source) {
  std::string kept;
  std::int64_t number = 0;
  for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string line = text.substr(begin, end - begin);
    if (step_of(line, source, ++number) <= step) kept.append(line).push_back('\n');
  }
  return kept;
}

void cut_metrics_after(const std::filesystem::path& path, std::int64_t step) {
  if (!std::filesystem::exists(path)) return;
  const std::string text = read_file(path);
  const std::string kept = metrics_until(text, step, path.string());
  if (kept != text) write_file_atomically(path, kept);
}

MetricsWriter::MetricsWriter(const std::filesystem::path& directory, bool tensorboard,
                             std::optional<std::int64_t> resume_step)
    : path_(directory / checkpoint::kMetricsFile) {
  if (resume_step) {
    cut_metrics_after(path_, *resume_step);
  } else {
    require(!std::filesystem::exists(path_), "{} exists already", path_.string());
  }
  file_.open(path_, std::ios::binary | std::ios::app);
  require(file_.good(), "{}: cannot write: {}", path_.string(), std::strerror(errno));
  if (tensorboard) {
    const auto restart_step = resume_step ? std::optional(*resume_step + 1) : std::nullopt;
    events_.emplace(directory / checkpoint::kTensorBoardFolder, restart_step);
  }
}

void MetricsWriter::write(const StepMetrics& m) {
  nlohmann::ordered_json line = {{"step", m.step}, {"tokens", m.tokens}};
  if (!m.skipped) line["loss"] = m.loss;
  line["lr"] = m.learning_rate;
  if (!m.skipped) line["grad_norm"] = m.grad_norm;
  if (m.skipped) line["skipped"] = true;
  line["tokens_per_second"] = std::round(m.tokens_per_second);
  line["seconds"] = std::round(m.seconds * 1e3) / 1e3;
  write_line(line.dump());
  if (!events_) return;
  std::vector<Scalar> scalars = {{"train/lr", m.learning_rate}, {"train/tokens_per_second", m.tokens_per_second}};
  if (!m.skipped) scalars.insert(scalars.end(), {{"train/loss", m.loss}, {"train/grad_norm", m.grad_norm}});
  events_->add(m.step, scalars);
}

void MetricsWriter::write(const ValidationMetrics& m) {
  const nlohmann::ordered_json line = {
      {"step", m.step}, {"val_loss", m.loss}, {"val_perplexity", m.perplexity()}, {"val_tokens", m.tokens}};
  write_line(line.dump());
  if (events_) events_->add(m.step, {{"val/loss", m.loss}, {"val/perplexity", m.perplexity()}});
}

void MetricsWriter::sync() { sync_path(path_); }

void MetricsWriter::write_line(const std::string& line) {
  file_ << line << '\n';
  file_.flush();
  require(file_.good(), "{}: cannot write: {}", path_.string(), std::strerror(errno));
}

}  // namespace satformer::train
