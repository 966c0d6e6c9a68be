#include "satformer/train/trainer.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cmath>

#include "satformer/checkpoint/manifest.h"
#include "satformer/core/clock.h"
#include "satformer/core/error.h"
#include "satformer/core/progress.h"
#include "satformer/data/token_dataset.h"
#include "satformer/distributed/agreement.h"
#include "satformer/io/files.h"
#include "satformer/io/folder_lock.h"
#include "satformer/optim/clip.h"
#include "satformer/optim/parameter_groups.h"
#include "satformer/train/rank_state.h"

namespace satformer::train {
namespace {

// What the run is trained on: the shards, and with a document mask the id that ends a document.
std::string fingerprint_of(const TrainingData& data) {
  std::string text = fmt::format("{:016x}", data.dataset.fingerprint());
  if (data.batch.document_mask) text += fmt::format(", end-of-text id {}", data.batch.end_of_text_id.value());
  return text;
}

}  // namespace

Trainer::Trainer(RunConfig config, TrainerOptions options)
    : config_(std::move(config)), options_(std::move(options)), world_(*options_.world) {
  const auto checkpoint = agreed_checkpoint();
  open_data();
  make_model_and_optimizer();
  state_.config = config_.values;
  state_.data_fingerprint = fingerprint_of(*data_);
  if (checkpoint) restore(*checkpoint);
  start_together(checkpoint ? fmt::format("{:08x}", crc32_of_file(*checkpoint / kManifestFile)) : std::string());
  if (world_.is_rank_zero()) describe_run();
}

// Rank 0 decides: it is the one that writes the run's folder.
std::optional<std::filesystem::path> Trainer::agreed_checkpoint() {
  std::string chosen;
  if (world_.is_rank_zero()) {
    chosen = choose_checkpoint(options_.output, options_.resume).value_or(std::filesystem::path()).string();
  }
  chosen = world_.broadcast_text(chosen, /*root=*/0, "the choice of a checkpoint");
  return chosen.empty() ? std::nullopt : std::optional<std::filesystem::path>(chosen);
}

void Trainer::open_data() {
  const DataConfig& data = config_.data;
  auto dataset = data::TokenDataset::open(data.data_dir, data.train_prefix,
                                          {.vocab_size = config_.model.vocab_size, .verify = data.verify_shards});
  const data::WindowSampler sampler(dataset.num_tokens(), data.seq_length, config_.system.seed);
  data_.emplace(TrainingData{std::move(dataset), sampler, batch_options(data, config_.model)});
  if (const auto tokenizer = data::find_tokenizer(data.data_dir)) tokenizer_ = read_file(*tokenizer);
}

void Trainer::make_model_and_optimizer() {
  const TrainingConfig& training = config_.training;
  model_ = models::make_model(config_.model, config_.system.seed);
  model_->to(options_.device);
  model_->train();
  model_->set_activation_checkpointing(training.gradient_checkpointing);
  model_->set_fused(training.fused);
  const std::vector<optim::NamedParameter> parameters = named_parameters(*model_);
  const auto owned =
      config_.distributed.shard_optimizer ? std::optional(world_.partition(model_->num_parameters())) : std::nullopt;
  optimizer_.emplace(optim::make_parameter_groups(parameters, training.weight_decay), training.adamw, owned);
  forward_backward_.emplace(*model_, options_.device, options_.dtype, training.cuda_graph);
  std::vector<at::Tensor> tensors;
  for (const optim::NamedParameter& parameter : parameters) tensors.push_back(parameter.tensor);
  const auto bucket_bytes = static_cast<std::int64_t>(config_.distributed.bucket_mb * (1 << 20));
  reducer_.emplace(world_, tensors,
                   distributed::ReducerOptions{.bucket_bytes = bucket_bytes, .overlap = !training.cuda_graph});
}

void Trainer::restore(const std::filesystem::path& checkpoint) {
  const auto accept = [&](const TrainerState& state) {
    check_resume(config_, state_.data_fingerprint, state, checkpoint);
    if (world_.is_rank_zero()) note_changes(config_, state);
  };
  state_ = load_checkpoint(checkpoint, *model_, *optimizer_, accept);
  state_.config = config_.values;
  const std::filesystem::path own = checkpoint_path(options_.output, state_.step);
  if (std::filesystem::exists(own) && std::filesystem::equivalent(own, checkpoint)) checkpoint_ = own;
  if (world_.is_rank_zero()) note(fmt::format("resuming from {} at step {}", checkpoint.string(), state_.step));
}

// From here on all ranks are in the same state.
void Trainer::start_together(const std::string& checkpoint_checksum) {
  require_same_start(
      world_, {config_, state_, named_parameters(*model_), options_.validation_fingerprint, checkpoint_checksum});
  checkpoint_ = world_.broadcast_text(checkpoint_.string(), /*root=*/0, "the name of the checkpoint");
  broadcast_parameters(world_, *optimizer_, config_.distributed);
}

void Trainer::describe_run() const {
  const TrainingConfig& training = config_.training;
  if (!config_.ignored.empty()) {
    note(fmt::format("known keys without meaning here: {}", fmt::join(config_.ignored, ", ")));
  }
  note(fmt::format("model {}: {} parameters, {} on {}", config_.model.architecture, model_->num_parameters(),
                   options_.dtype == c10::ScalarType::Float ? "float32" : "bfloat16", options_.device.str()));
  for (const optim::ParameterGroup& group : optimizer_->groups()) note(optim::describe(group));
  if (world_.size() > 1) {
    note(fmt::format("{} ranks, {} buckets of gradients{}", world_.size(), reducer_->num_buckets(),
                     config_.distributed.shard_optimizer ? ", the optimiser's moments divided over the ranks" : ""));
  }
  note(fmt::format("{} steps of {} sequences of {} tokens; {} windows in an epoch", training.schedule.max_steps,
                   training.sequences_per_step(), config_.data.seq_length, data_->sampler.windows_per_epoch()));
}

StepMetrics Trainer::step() {
  const TrainingConfig& training = config_.training;
  const Clock::time_point start = Clock::now();
  StepMetrics metrics;
  metrics.learning_rate = optim::learning_rate(training.schedule, state_.step);

  const SampleRange samples{state_.samples, training.sequences_per_step()};
  const Range own = world_.partition(samples.count);
  LossTotal total = accumulate_gradients(*forward_backward_, *data_, {samples.first + own.begin, own.size()},
                                         training.micro_batch_size, [this] { reducer_->arm(); });
  sum_over_ranks(total);
  metrics.skipped = !update(total, metrics);
  optimizer_->zero_grad(forward_backward_->keeps_gradients());

  state_.step += 1;
  state_.samples += samples.count;
  state_.tokens += total.num_targets;
  state_.skipped_steps += metrics.skipped ? 1 : 0;
  state_.skipped_in_a_row = metrics.skipped ? state_.skipped_in_a_row + 1 : 0;
  if (!metrics.skipped) state_.train_loss = metrics.loss;
  checkpoint_.clear();

  const double seconds = seconds_since(start);
  step_seconds_ += seconds;
  tokens_here_ += total.num_targets;
  metrics.step = state_.step;
  metrics.tokens = state_.tokens;
  metrics.tokens_per_second = static_cast<double>(total.num_targets) / seconds;
  return metrics;
}

// The step's loss and gradients from those of the ranks' parts of it.
void Trainer::sum_over_ranks(LossTotal& total) {
  if (world_.size() == 1) return;
  const at::Tensor used = reducer_->end_pass();
  const bool stop = options_.stop_requested && options_.stop_requested();
  const at::Tensor own =
      at::tensor({total.loss_sum, static_cast<double>(total.num_targets), stop ? 1.0 : 0.0}, at::kDouble);
  const at::Tensor sums = at::cat({own, used});
  world_.sum(sums, fmt::format("the sum of losses of step {}", state_.step + 1));
  const double* values = sums.const_data_ptr<double>();
  total = {values[0], static_cast<std::int64_t>(values[1])};
  stop_agreed_ = values[2] > 0;
  reducer_->finish(sums.slice(0, own.numel()));
}

// From the gradient of the summed loss to new parameters; false, and no change, when something is not finite.
bool Trainer::update(const LossTotal& total, StepMetrics& metrics) {
  const std::vector<at::Tensor> gradients = optimizer_->gradients();
  const auto targets = static_cast<double>(total.num_targets);
  metrics.loss = total.mean();
  metrics.grad_norm = optim::global_norm(gradients) / targets;
  if (!std::isfinite(metrics.loss) || !std::isfinite(metrics.grad_norm)) return false;
  optimizer_->step(metrics.learning_rate, optim::clip_factor(metrics.grad_norm, config_.training.grad_clip) / targets);
  if (config_.distributed.shard_optimizer && world_.size() > 1) {
    gather_parameters(world_, *optimizer_, config_.distributed);
  }
  return true;
}

TrainingResult Trainer::run() {
  const std::int64_t max_steps = config_.training.schedule.max_steps;
  std::optional<FileDescriptor> lock;
  Outputs outputs;
  if (world_.is_rank_zero()) {
    std::filesystem::create_directories(options_.output);
    lock.emplace(lock_folder(options_.output));
    open_outputs(outputs);
  }
  const Clock::time_point start = Clock::now();
  bool stopped = false;
  while (state_.step < max_steps && !stopped) {
    StepMetrics metrics = step();
    metrics.seconds = seconds_since(start);
    outputs.add(metrics);
    check_skipped();
    check_parameters();
    if (due(config_.logging.eval_interval)) validate(outputs);
    if (due(config_.checkpointing.checkpoint_interval)) save(outputs);
    stopped = state_.step < max_steps && stop_wanted();
  }
  if (!stopped) validate(outputs);  // before the last checkpoint, which holds its result
  save(outputs);
  return {state_, model_->num_parameters(), step_seconds_ > 0 ? static_cast<double>(tokens_here_) / step_seconds_ : 0.0,
          checkpoint_, stopped};
}

void Trainer::open_outputs(Outputs& outputs) {
  remove_stale_checkpoints(options_.output);
  const auto resume_step = options_.resume.given() ? std::optional(state_.step) : std::nullopt;
  outputs.writer.emplace(options_.output, config_.logging.tensorboard, resume_step);
  outputs.display.emplace(state_.step, config_.training.schedule.max_steps, config_.logging.log_interval);
}

template <typename Metrics>
void Trainer::Outputs::add(const Metrics& metrics) {
  if (writer) writer->write(metrics);
  if (display) display->show(metrics);
}

bool Trainer::stop_wanted() const {
  return world_.size() == 1 ? options_.stop_requested && options_.stop_requested() : stop_agreed_;
}

// Ranks compute the same updates; one whose memory or processor errs is found here.
void Trainer::check_parameters() {
  const std::int64_t interval = config_.distributed.check_interval;
  if (interval == 0 || state_.step % interval != 0 || world_.size() == 1) return;
  std::vector<std::pair<std::string, at::Tensor>> parameters;
  for (const auto& [name, tensor] : named_parameters(*model_)) parameters.emplace_back(name, tensor);
  require_equal_tensors(world_, parameters, fmt::format("after step {}", state_.step));
}

// After the last step run() validates and saves in any case.
bool Trainer::due(std::int64_t interval) const {
  return interval > 0 && state_.step % interval == 0 && state_.step < config_.training.schedule.max_steps;
}

void Trainer::check_skipped() const {
  require(state_.skipped_in_a_row < config_.training.max_skipped_steps,
          "the loss or gradient was not finite in {} steps in a row, up to step {}: stopped; resume from the last "
          "checkpoint with a lower training.learning_rate",
          state_.skipped_in_a_row, state_.step);
}

// Once a step at most: at the end it may have been done already.
void Trainer::validate(Outputs& outputs) {
  const bool done = state_.val_loss && state_.val_step == state_.step;
  if (done || !options_.validate) return;
  model_->eval();
  const Validation validation = options_.validate(*model_);
  model_->train();
  require(std::isfinite(validation.loss),
          "the validation loss is not finite after step {}: resume from the last "
          "checkpoint with a lower training.learning_rate",
          state_.step);
  const ValidationMetrics metrics{state_.step, validation.loss, validation.tokens};
  state_.val_loss = metrics.loss;
  state_.val_step = metrics.step;
  state_.val_tokens = metrics.tokens;
  if (!state_.best_val_loss || metrics.loss < *state_.best_val_loss) state_.best_val_loss = metrics.loss;
  outputs.add(metrics);
}

void Trainer::save(Outputs& outputs) {
  if (!checkpoint_.empty()) return;
  std::map<std::string, at::Tensor> gathered;
  const bool sharded = config_.distributed.shard_optimizer && world_.size() > 1;
  if (sharded) gathered = gather_optimizer_state(world_, *optimizer_, config_.distributed);
  if (world_.is_rank_zero()) {
    outputs.writer->sync();  // a checkpoint on the disk has its metrics on the disk
    const CheckpointContents contents{*model_, *optimizer_, state_, tokenizer_, sharded ? &gathered : nullptr};
    save_checkpoint(options_.output, contents, config_.checkpointing.keep_last);
  }
  checkpoint_ = checkpoint_path(options_.output, state_.step);
  if (outputs.display) outputs.display->say(fmt::format("saved {}", checkpoint_.string()));
}

}  // namespace satformer::train
