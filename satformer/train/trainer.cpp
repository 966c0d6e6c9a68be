#include "satformer/train/trainer.h"

#include <cmath>

#include "satformer/checkpoint/layout.h"
#include "satformer/checkpoint/load.h"
#include "satformer/checkpoint/parameters.h"
#include "satformer/checkpoint/save.h"
#include "satformer/core/clock.h"
#include "satformer/core/error.h"
#include "satformer/core/progress.h"
#include "satformer/data/token_dataset.h"
#include "satformer/distributed/agreement.h"
#include "satformer/io/files.h"
#include "satformer/optim/parameter_groups.h"
#include "satformer/train/describe_run.h"
#include "satformer/train/rank_state.h"

namespace satformer::train {
namespace {

// What the run is trained on: the shards, and with a document mask the id that ends a document.
std::string fingerprint_of(const TrainingData& data) {
  std::string text = fmt::format("{:016x}", data.dataset.fingerprint());
  if (data.batch.document_mask) text += fmt::format(", end-of-text id {}", data.batch.end_of_text_id.value());
  return text;
}

std::string checksum_of(const std::optional<std::filesystem::path>& checkpoint) {
  return checkpoint ? fmt::format("{:08x}", crc32_of_file(*checkpoint / checkpoint::kManifestFile)) : std::string();
}

}  // namespace

Trainer::Trainer(RunConfig config, TrainerOptions options)
    : config_(std::move(config)), options_(std::move(options)), world_(*options_.world) {
  if (options_.validates) validator_.emplace(config_, options_.device, options_.dtype, world_);
  const auto checkpoint = agreed_checkpoint();
  open_data();
  make_model_and_optimizer();
  state_.config = config_.values;
  state_.data_fingerprint = fingerprint_of(*data_);
  if (checkpoint) restore(*checkpoint);
  start_together(checksum_of(checkpoint));
  if (world_.is_rank_zero()) describe_run();
}

// Rank 0 decides: it is the one that writes the run's folder.
std::optional<std::filesystem::path> Trainer::agreed_checkpoint() {
  std::string chosen;
  if (world_.is_rank_zero()) {
    chosen = choose_checkpoint(options_.output, options_.resume).value_or(std::filesystem::path()).string();
  }
  chosen = world_.broadcast_text(chosen, /*root=*/0, "the broadcast of the checkpoint to start from");
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
  const auto owned =
      config_.distributed.shard_optimizer ? std::optional(world_.partition(model_->num_parameters())) : std::nullopt;
  optimizer_.emplace(optim::make_parameter_groups(checkpoint::named_parameters(*model_), training.weight_decay),
                     training.adamw, owned);
  step_.emplace(config_, *model_, *optimizer_, options_.device, options_.dtype, world_);
}

void Trainer::restore(const std::filesystem::path& checkpoint) {
  const auto accept = [&](const checkpoint::TrainerState& state) {
    check_resume(config_, state_.data_fingerprint, state, checkpoint);
    if (world_.is_rank_zero()) note_changes(config_, state);
  };
  state_ = checkpoint::restore(checkpoint, *model_, *optimizer_, accept);
  state_.config = config_.values;
  const std::filesystem::path own = checkpoint::path_of_step(options_.output, state_.step);
  if (std::filesystem::exists(own) && std::filesystem::equivalent(own, checkpoint)) checkpoint_ = own;
  if (world_.is_rank_zero()) note(fmt::format("resuming from {} at step {}", checkpoint.string(), state_.step));
}

// From here on all ranks are in the same state.
void Trainer::start_together(const std::string& checkpoint_checksum) {
  const std::string validation = validator_ ? validator_->fingerprint() : std::string();
  require_same_start(world_, {config_, state_, checkpoint::named_parameters(*model_), validation, checkpoint_checksum});
  checkpoint_ = world_.broadcast_text(checkpoint_.string(), /*root=*/0, "the broadcast of the checkpoint's name");
  broadcast_parameters(world_, *optimizer_, config_.distributed);
}

void Trainer::describe_run() const {
  note_run(config_, {.parameters = model_->num_parameters(),
                     .device = options_.device,
                     .dtype = options_.dtype,
                     .groups = optimizer_->groups(),
                     .ranks = world_.size(),
                     .buckets = step_->num_buckets(),
                     .windows_per_epoch = data_->sampler.windows_per_epoch()});
}

StepMetrics Trainer::step() {
  const Clock::time_point start = Clock::now();
  const StepRequest request{
      .step = state_.step + 1,
      .samples = {state_.samples, config_.training.sequences_per_step()},
      .learning_rate = optim::learning_rate(config_.training.schedule, state_.step),
      .stop = world_.size() > 1 && options_.stop_requested && options_.stop_requested(),
  };
  const StepResult result = step_->run(*data_, request);
  count_step(result);
  const double seconds = seconds_since(start);
  step_seconds_ += seconds;
  return {.step = state_.step,
          .tokens = state_.tokens,
          .loss = result.loss.mean(),
          .learning_rate = request.learning_rate,
          .grad_norm = result.grad_norm,
          .skipped = !result.finite,
          .tokens_per_second = static_cast<double>(result.loss.num_targets) / seconds};
}

void Trainer::count_step(const StepResult& result) {
  state_.step += 1;
  state_.samples += config_.training.sequences_per_step();
  state_.tokens += result.loss.num_targets;
  state_.skipped_steps += result.finite ? 0 : 1;
  state_.skipped_in_a_row = result.finite ? 0 : state_.skipped_in_a_row + 1;
  if (result.finite) state_.train_loss = result.loss.mean();
  checkpoint_.clear();
  tokens_here_ += result.loss.num_targets;
  stop_agreed_ = result.stop;
}

TrainingResult Trainer::run() {
  const std::int64_t max_steps = config_.training.schedule.max_steps;
  std::optional<RunOutputs> rank_zero;
  if (world_.is_rank_zero()) rank_zero.emplace(options_.output, config_, state_.step, options_.resume.given());
  RunOutputs* const outputs = rank_zero ? &*rank_zero : nullptr;
  const Clock::time_point start = Clock::now();
  bool stopped = false;
  while (state_.step < max_steps && !stopped) {
    StepMetrics metrics = step();
    metrics.seconds = seconds_since(start);
    if (outputs != nullptr) outputs->add(metrics);
    require_progress();
    compare_ranks();
    if (due(config_.logging.eval_interval)) validate(outputs);
    if (due(config_.checkpointing.checkpoint_interval)) save(outputs);
    stopped = state_.step < max_steps && stop_requested();
  }
  if (!stopped) validate(outputs);  // before the last checkpoint, which holds its result
  save(outputs);
  return {state_, model_->num_parameters(), step_seconds_ > 0 ? static_cast<double>(tokens_here_) / step_seconds_ : 0.0,
          checkpoint_, stopped};
}

bool Trainer::stop_requested() const {
  return world_.size() == 1 ? options_.stop_requested && options_.stop_requested() : stop_agreed_;
}

// Ranks compute the same updates; one whose memory or processor errs is found here.
void Trainer::compare_ranks() {
  const std::int64_t interval = config_.distributed.check_interval;
  if (interval == 0 || state_.step % interval != 0 || world_.size() == 1) return;
  std::vector<std::pair<std::string, at::Tensor>> parameters;
  for (const optim::NamedParameter& parameter : checkpoint::named_parameters(*model_)) {
    parameters.emplace_back(parameter.name, parameter.tensor);
  }
  require_equal_tensors(world_, parameters, fmt::format("after step {}", state_.step));
}

// After the last step run() validates and saves in any case.
bool Trainer::due(std::int64_t interval) const {
  return interval > 0 && state_.step % interval == 0 && state_.step < config_.training.schedule.max_steps;
}

void Trainer::require_progress() const {
  require(state_.skipped_in_a_row < config_.training.max_skipped_steps,
          "the loss or gradient was not finite in {} steps in a row, up to step {}: stopped; resume from the last "
          "checkpoint with a lower training.learning_rate",
          state_.skipped_in_a_row, state_.step);
}

// Once a step at most: at the end it may have been done already.
void Trainer::validate(RunOutputs* outputs) {
  const bool done = state_.val_loss && state_.val_step == state_.step;
  if (done || !validator_) return;
  const eval::LossTotal total = validator_->run(*model_);
  const ValidationMetrics metrics{state_.step, total.mean(), total.num_targets};
  require(std::isfinite(metrics.loss),
          "the validation loss is not finite after step {}: resume from the last "
          "checkpoint with a lower training.learning_rate",
          state_.step);
  state_.val_loss = metrics.loss;
  state_.val_step = metrics.step;
  state_.val_tokens = metrics.tokens;
  if (!state_.best_val_loss || metrics.loss < *state_.best_val_loss) state_.best_val_loss = metrics.loss;
  if (outputs != nullptr) outputs->add(metrics);
}

void Trainer::save(RunOutputs* outputs) {
  if (!checkpoint_.empty()) return;
  std::map<std::string, at::Tensor> gathered;
  const bool sharded = config_.distributed.shard_optimizer && world_.size() > 1;
  if (sharded) gathered = gather_optimizer_state(world_, *optimizer_, config_.distributed);
  if (outputs != nullptr) {
    outputs->sync();  // a checkpoint on the disk has its metrics on the disk
    const checkpoint::Contents contents{*model_, *optimizer_, state_, tokenizer_, sharded ? &gathered : nullptr};
    checkpoint::save(options_.output, contents, config_.checkpointing.keep_last);
  }
  checkpoint_ = checkpoint::path_of_step(options_.output, state_.step);
  if (outputs != nullptr) outputs->say(fmt::format("saved {}", checkpoint_.string()));
}

}  // namespace satformer::train
