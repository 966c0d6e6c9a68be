#include "satformer/distributed/gradient_reducer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <utility>

#include "satformer/core/error.h"

namespace satformer::distributed {

// Runs after autograd has added a gradient to a parameter's.
class GradientReducer::Hook : public torch::autograd::PostAccumulateGradHook {
 public:
  Hook(GradientReducer& reducer, Bucket& bucket, Member& member)
      : reducer_(reducer), bucket_(bucket), member_(member) {}

  void operator()(const at::Tensor& /*parameter*/) override { reducer_.on_gradient(bucket_, member_); }

 private:
  GradientReducer& reducer_;
  Bucket& bucket_;
  Member& member_;
};

GradientReducer::GradientReducer(World& world, const std::vector<at::Tensor>& parameters, const ReducerOptions& options)
    : world_(world), options_(options), num_parameters_(parameters.size()) {
  if (world_.size() == 1) return;
  make_buckets(parameters, options.bucket_bytes);
  if (!options_.overlap) return;
  for (Bucket& bucket : buckets_) {
    for (Member& member : bucket.members) {
      torch::autograd::impl::set_post_acc_grad_hooks(member.parameter, std::make_unique<Hook>(*this, bucket, member));
    }
  }
}

GradientReducer::~GradientReducer() {
  if (!options_.overlap) return;
  for (const Bucket& bucket : buckets_) {
    for (const Member& member : bucket.members) {
      torch::autograd::impl::set_post_acc_grad_hooks(member.parameter, nullptr);
    }
  }
}

// The last parameters first: the backward pass comes to them first.
void GradientReducer::make_buckets(const std::vector<at::Tensor>& parameters, std::int64_t bucket_bytes) {
  for (std::size_t i = parameters.size(); i-- > 0;) {
    const at::Tensor& parameter = parameters[i];
    require(parameter.is_contiguous() && parameter.dtype() == parameters.front().dtype() &&
                parameter.device() == parameters.front().device(),
            "data-parallel training: all parameters must be contiguous, of one dtype and on one device");
    const auto bytes = static_cast<std::int64_t>(parameter.nbytes());
    const auto element = static_cast<std::int64_t>(parameter.element_size());
    const bool full =
        buckets_.empty() || (buckets_.back().size > 0 && buckets_.back().size * element + bytes > bucket_bytes);
    if (full) buckets_.emplace_back();
    Bucket& bucket = buckets_.back();
    bucket.members.push_back({parameter, i, bucket.size});
    bucket.size += parameter.numel();
  }
  for (Bucket& bucket : buckets_) {
    bucket.memory = at::empty({bucket.size}, parameters.front().options().requires_grad(false));
  }
}

std::vector<double> GradientReducer::reduce(const Passes& passes, const std::string& name) {
  if (world_.size() == 1) return passes([] {});
  begun_ = begun_in_backward_ = 0;
  const std::vector<double> own = passes([this] { in_last_pass_ = options_.overlap; });
  in_last_pass_ = false;
  begun_in_backward_ = begun_;
  const at::Tensor sums = at::cat({at::tensor(own, at::kDouble), has_gradient()});
  reduce_all_buckets();
  world_.all_reduce(sums, name);
  const double* values = sums.const_data_ptr<double>();
  take_sums(values + own.size());
  return {values, values + own.size()};
}

void GradientReducer::on_gradient(Bucket& bucket, Member& member) {
  if (!in_last_pass_) return;
  require(!member.ready, "data-parallel training: a parameter got its gradient twice in one backward pass");
  fill(bucket, member, /*adopt=*/true);
  reduce_full_buckets();
}

// Puts a gradient into the bucket; with `adopt` it lives there from now on, and its own memory is freed.
void GradientReducer::fill(Bucket& bucket, Member& member, bool adopt) {
  const at::NoGradGuard no_grad;
  const at::Tensor view = view_of(bucket, member);
  at::Tensor& gradient = member.parameter.mutable_grad();
  if (!gradient.defined()) {
    view.zero_();
  } else if (gradient.const_data_ptr() != view.const_data_ptr()) {
    view.copy_(gradient);
    if (adopt) gradient = view;
  }
  member.ready = true;
  ++bucket.ready;
}

void GradientReducer::reduce_full_buckets() {
  while (begun_ < buckets_.size() && buckets_[begun_].ready == buckets_[begun_].members.size()) {
    reduce_bucket(buckets_[begun_]);
  }
}

void GradientReducer::reduce_all_buckets() {
  while (begun_ < buckets_.size()) {
    Bucket& bucket = buckets_[begun_];
    for (Member& member : bucket.members) {
      if (!member.ready) fill(bucket, member, options_.overlap);
    }
    reduce_bucket(bucket);
  }
}

void GradientReducer::reduce_bucket(Bucket& bucket) {
  ++begun_;
  bucket.wait = world_.all_reduce_async(
      bucket.memory, fmt::format("the all-reduce of gradients (bucket {} of {})", begun_, buckets_.size()));
}

// float64 [number of parameters]: 1 where this rank has a gradient.
at::Tensor GradientReducer::has_gradient() const {
  at::Tensor flags = at::zeros({static_cast<std::int64_t>(num_parameters_)}, at::kDouble);
  double* flag = flags.data_ptr<double>();
  for (const Bucket& bucket : buckets_) {
    for (const Member& member : bucket.members) flag[member.index] = member.parameter.grad().defined() ? 1 : 0;
  }
  return flags;
}

// Waits for the buckets' sums and makes them the gradients, where any rank has one.
void GradientReducer::take_sums(const double* has_gradient) {
  const at::NoGradGuard no_grad;
  for (Bucket& bucket : buckets_) {
    std::exchange(bucket.wait, nullptr)();
    for (Member& member : bucket.members) {
      at::Tensor& gradient = member.parameter.mutable_grad();
      const at::Tensor view = view_of(bucket, member);
      if (has_gradient[member.index] > 0 && (options_.overlap || !gradient.defined())) gradient = view;
      if (gradient.defined() && gradient.const_data_ptr() != view.const_data_ptr()) gradient.copy_(view);
      member.ready = false;
    }
    bucket.ready = 0;
  }
}

at::Tensor GradientReducer::view_of(const Bucket& bucket, const Member& member) {
  return bucket.memory.slice(0, member.begin, member.begin + member.parameter.numel()).view(member.parameter.sizes());
}

}  // namespace satformer::distributed
