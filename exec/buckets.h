// All parameters of one rank with what happens to their gradients once the backward passes are done:
//
//   bucket ─ norm_grad_reduce (tensor group) ─ tied_grad_reduce (first and last stage) ─ grad_reduce (data)
//     ZeRO 0: the whole bucket is reduced; every rank updates all of it
//     ZeRO 1: reduce-scatter; this rank keeps, counts and updates its slice, then weights are gathered
//   ─ grad_norm ─ norm_reduce ─ optimizer_step ─ parameter_gather
//
// Every gradient element counts once in the global norm: replicas (data ranks and copies of the model without
// ZeRO, tensor ranks of a replicated tensor, a tied head's copy) are left out.
// Guarded by tests/execute_layouts_test.cpp.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <ostream>

#include "exec/optimizer.h"
#include "exec/parameters.h"
#include "exec/rank_model.h"

namespace slipway {

class Buckets {
 public:
  // Draws the parameters of all stages of `rank`.
  Buckets(const Bundle& bundle, int rank, at::Device device);

  const BlockParameters& block(int index) const;

  // The tensors of norm_grad_reduce, tied_grad_reduce, grad_reduce and parameter_gather: views where the
  // collective works in place. Throws std::runtime_error for any other kind.
  Message message(const Work& work) const;
  // Tied embedding on a rank that holds both copies: each becomes the sum.
  void add_tied_copies();

  // Sum of squares in float64, [1], of what this rank counts; stage = none: of all its stages.
  at::Tensor square_sum(int stage) const;
  // AdamW on this rank's slices of `stage` with gradients times `scale` (undefined = 1), then all its
  // gradients are zero.
  void step(int stage, const at::Tensor& scale);
  void dump(int stage, std::ostream& out) const;

  // Masters and moments of what no other rank saves: replicas beyond the first, and tensor ranks of replicated
  // tensors, have nothing to say.
  void save(ShardWriter& out) const;
  void load(const CheckpointReader& checkpoint);

 private:
  struct Bucket {
    int stage = 0;
    BlockParameters parameters;
    std::int64_t begin = 0, end = 0;  // this rank's slice of the flat tensors
    at::Tensor slice_gradient;        // a view of the bucket, or its reduce-scattered part
    AdamwShard adamw;
  };
  Bucket make_bucket(int stage, int block, ParameterPlacement placement) const;
  const Bucket& bucket(int block) const;
  // Flat view of this rank's copy of the tied embedding: of the copy of the model that `stage` belongs to.
  at::Tensor tied_gradient(int stage) const;
  // Place of this rank among those that hold the weights of `stage`: data × context × copies of the model.
  int replica_of(int stage) const;
  // Calls visit(bucket) for the blocks of `stage` (none: of every stage of this rank).
  template <typename Visit>
  void for_each(int stage, Visit visit) const;

  const Bundle& bundle_;
  Coordinates at_;
  int slice_count_ = 1;
  std::map<int, Bucket> buckets_;  // by block
};

}  // namespace slipway
