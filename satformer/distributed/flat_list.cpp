#include "satformer/distributed/flat_list.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>

#include "satformer/core/error.h"

namespace satformer::distributed {

FlatList::FlatList(const std::vector<at::Tensor>& tensors, const at::TensorOptions& options)
    : options_(at::TensorOptions(options.device()).dtype(options.dtype())), begins_{0} {
  const at::NoGradGuard no_grad;
  for (const at::Tensor& tensor : tensors) {
    require(tensor.is_contiguous() && tensor.dtype() == options.dtype() && tensor.device() == options.device(),
            "a list of tensors as one sequence: all must be contiguous and {} on {}, got {} on {}",
            options.dtype().name(), options.device().str(), tensor.dtype().name(), tensor.device().str());
    flat_.push_back(tensor.detach().view(-1));
    begins_.push_back(begins_.back() + tensor.numel());
  }
}

at::Tensor FlatList::empty(std::int64_t elements) const { return at::empty({elements}, options_); }

// Calls copy(part of one of the tensors, part of `flat`) for each tensor that has elements in the range.
template <typename Copy>
void FlatList::for_each_piece(std::int64_t begin, const at::Tensor& flat, const Copy& copy) const {
  const std::int64_t end = begin + flat.numel();
  require(begin >= 0 && end <= size(), "a list of {} elements has no elements {} to {}", size(), begin, end);
  const auto after = std::upper_bound(begins_.begin(), begins_.end(), begin);
  for (auto i = static_cast<std::size_t>(after - begins_.begin()) - 1; i < flat_.size() && begins_[i] < end; ++i) {
    const std::int64_t from = std::max(begin, begins_[i]), to = std::min(end, begins_[i + 1]);
    if (from < to) copy(flat_[i].slice(0, from - begins_[i], to - begins_[i]), flat.slice(0, from - begin, to - begin));
  }
}

void FlatList::copy_out(std::int64_t begin, const at::Tensor& flat) const {
  const at::NoGradGuard no_grad;
  for_each_piece(begin, flat, [](const at::Tensor& own, const at::Tensor& part) { part.copy_(own); });
}

void FlatList::copy_in(std::int64_t begin, const at::Tensor& flat) const {
  const at::NoGradGuard no_grad;
  for_each_piece(begin, flat, [](const at::Tensor& own, const at::Tensor& part) { own.copy_(part); });
}

void broadcast_list(World& world, const FlatList& list, int root, const Transfer& transfer) {
  if (world.size() == 1 || list.size() == 0) return;
  for (std::int64_t begin = 0; begin < list.size(); begin += transfer.elements) {
    const at::Tensor part = list.empty(std::min(transfer.elements, list.size() - begin));
    list.copy_out(begin, part);
    world.broadcast(part, root, transfer.name);
    if (world.rank() != root) list.copy_in(begin, part);
  }
}

void gather_parts(World& world, std::int64_t count, const FlatList& mine, std::int64_t first, const FlatList* all,
                  const Transfer& transfer) {
  const Range own = world.partition(count);
  const std::int64_t longest = (count + world.size() - 1) / world.size();
  for (std::int64_t done = 0; done < longest; done += transfer.elements) {
    // All ranks give as much as the longest part has here, of which a shorter one leaves the end unused.
    const std::int64_t length = std::min(transfer.elements, longest - done);
    const auto used = [&](const Range& range) { return std::clamp<std::int64_t>(range.size() - done, 0, length); };
    const at::Tensor part = mine.empty(length);
    if (used(own) > 0) mine.copy_out(own.begin + done - first, part.slice(0, 0, used(own)));
    if (used(own) < length) part.slice(0, used(own)).zero_();
    const at::Tensor parts = world.all_gather(part, transfer.name);
    for (int rank = 0; all != nullptr && rank < world.size(); ++rank) {
      const Range other = partition(count, rank, world.size());
      if (used(other) > 0) all->copy_in(other.begin + done, parts[rank].slice(0, 0, used(other)));
    }
  }
}

}  // namespace satformer::distributed
