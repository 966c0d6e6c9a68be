#pragma once
// A list of tensors as one sequence of numbers: the elements of the first in their order, then those of the second, ...
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "satformer/core/range.h"
#include "satformer/distributed/world.h"

namespace satformer::distributed {

class FlatList {
 public:
  // Contiguous, of the dtype and device of `options` (a list may be empty); what is written through the list is written
  // into them.
  FlatList(const std::vector<at::Tensor>& tensors, const at::TensorOptions& options);

  std::int64_t size() const { return begins_.back(); }
  at::Tensor empty(std::int64_t elements) const;  // [elements], of the dtype, on the device
  // Elements [begin, begin + flat.numel()) of the sequence, from and to a tensor [n].
  void copy_out(std::int64_t begin, const at::Tensor& flat) const;
  void copy_in(std::int64_t begin, const at::Tensor& flat) const;

 private:
  template <typename Copy>
  void for_each_piece(std::int64_t begin, const at::Tensor& flat, const Copy& copy) const;

  at::TensorOptions options_;
  std::vector<at::Tensor> flat_;      // [numel] each, the tensors' own memory
  std::vector<std::int64_t> begins_;  // of each in the sequence, and the end
};

// How much goes through the network at a time.
struct Transfer {
  std::int64_t elements = std::int64_t{1} << 22;  // of one rank
  std::string name;                               // of the collectives
};

// Overwrites the tensors with those of `root`.
void broadcast_list(World& world, const FlatList& list, int root, const Transfer& transfer);

// A sequence of `count` elements of which each rank has its part (world.partition(count)): `mine` holds those from
// `first` on, the part among them. All are written into `all`, where a rank wants them.
void gather_parts(World& world, std::int64_t count, const FlatList& mine, std::int64_t first, const FlatList* all,
                  const Transfer& transfer);

}  // namespace satformer::distributed
