// All parameters of one rank, and the work on their gradients once the backward passes are done:
//
//   bucket ─ norm_grad_reduce (tensor group) ─ kv_grad_reduce (ranks with the same key-value heads) ─ tied_grad_reduce (first and last stage, of two ranks) ─ grad_reduce (data)
//     ZeRO 0: the whole bucket is reduced; every rank updates all of it
//     ZeRO 1: reduce-scatter; this rank keeps, counts and updates its slice, then weights are gathered
//   ─ grad_norm ─ norm_reduce ─ optimizer_step ─ parameter_gather
//     ZeRO 2: each micro-batch's gradients of a block leave the bucket when they are complete (take), are
//             reduce-scattered and added to this rank's slice; the later steps above then work on slices
//     ZeRO 3: a rank also keeps only its slice of the weights and gathers a block before each use
//
// Where tokens travel to experts, a block's experts are a bucket apart: a rank has some of them, and reduces them with
// the ranks that have the same ones.
//
// Every gradient element counts once in the global norm: replicas (data ranks and copies of the model without
// ZeRO, tensor ranks of a replicated tensor or with a copy of a key-value head, a tied head's copy) are left out.
// Guarded by tests/exec/execute_layouts_test.cpp.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <compare>
#include <functional>
#include <map>
#include <optional>
#include <ostream>

#include "exec/operators/gathered_weights.h"
#include "exec/operators/linear.h"
#include "exec/operators/parameters.h"
#include "exec/rank/optimizer.h"
#include "exec/rank/rank_model.h"
#include "schedules/step/expert_place.h"

namespace slipway::exec {

class Buckets {
 public:
  // Draws the parameters of all stages of `rank`.
  Buckets(const Bundle& bundle, int rank, at::Device device);

  // Also those of the block's experts, in BlockParameters::elsewhere where they are a bucket apart.
  const BlockParameters& block(int index) const;
  std::vector<int> blocks() const;  // of this rank, ascending

  // The tensors of norm_grad_reduce, kv_grad_reduce, tied_grad_reduce, grad_reduce and parameter_gather: views where the
  // collective works in place. Throws std::runtime_error for any other kind.
  Message message(const Work& work) const;
  // ZeRO 2 and 3. A bucket has memory from a backward pass to take(), which returns the gradients so far. A reduced
  // slice of them is added to this rank's. The rank keeps the part of the tied embedding's reduced gradient that lies
  // in its slices. Small gradients of a split backward wait until their block has memory. A block's bucket, or that of
  // its experts apart.
  struct Key {
    int block = 0;
    bool experts = false;
    auto operator<=>(const Key&) const = default;
  };
  static Key key_of(const Work& work) { return {work.block, work.experts}; }
  void prepare(Key key);
  void add_when_prepared(std::vector<WaitingGradient> small);
  at::Tensor take(Key key);
  at::Tensor empty_slice(Key key) const;
  void add_to_slice(Key key, const at::Tensor& reduced);
  void keep_tied(const at::Tensor& whole);
  // The sum of kv_grad_reduce goes back to where the message came from.
  void keep_copied(int block, const at::Tensor& sum);
  // ZeRO 3: a gather of the bucket begins; its memory exists as long as `hold`.
  Message gather(Key key, std::shared_ptr<void>& hold);
  // ZeRO 3: what this rank gathers of the bucket before each use; undefined where it holds all of it.
  at::Tensor gathered_weights(Key key) const;

  // Sum of squares in float64, [1], of what this rank counts; stage = none: of all its stages.
  at::Tensor square_sum(int stage) const;
  // The same for all of `block`'s flat gradient, `flat`, before it is reduced over the data parallel ranks. Experts are
  // never apart then (schedules/rules/rules.cpp).
  at::Tensor whole_square_sum(int block, const at::Tensor& flat) const;
  // Updates this rank's slices of `stage` at the learning rate `rate`, with gradients times `scale` (undefined = 1).
  // Then all its gradients are zero.
  void step(int stage, double rate, const at::Tensor& scale);
  void dump(int stage, std::ostream& out) const;

  // Saves masters and moments that no other rank saves: replicas beyond the first, and tensor ranks of replicated
  // tensors, save nothing.
  void save(ShardWriter& out) const;
  // Takes this rank's shards of what `whole` returns for each of its parameters.
  void load(const std::function<ParameterState(const Parameter&)>& whole);

 private:
  // This rank among those that hold the same parameters and, with ZeRO, divide them.
  struct Holders {
    int replica = 0, slices = 1;
  };
  struct Bucket {
    int stage = 0;
    Holders holders;
    BlockParameters parameters;
    std::int64_t begin = 0, end = 0;  // this rank's slice of the flat tensors
    at::Tensor slice_gradient;        // a view of the bucket, or its reduce-scattered part
    OptimizerShard optimizer;
    at::Tensor slice_weights;                   // ZeRO 3
    std::shared_ptr<GatheredWeights> gathered;  // ZeRO 3
  };
  Bucket make_bucket(int stage, Key key, ParameterPlacement placement) const;
  const Bucket& bucket(Key key) const;
  const Bucket& bucket(int block) const { return bucket(Key{block, false}); }
  const Bucket& bucket(const Work& work) const { return bucket(key_of(work)); }
  // Flat view of this rank's copy of the tied embedding, in the copy of the model that `stage` belongs to.
  at::Tensor tied_gradient(int stage) const;
  bool shards_gradients(const Holders& of) const { return of.slices > 1 && bundle_.graph.step.layout.zero >= 2; }
  bool shards_dense_gradients() const { return slice_count_ > 1 && bundle_.graph.step.layout.zero >= 2; }
  at::Tensor tied_of_slices() const;
  // This rank's gradients of keys and values of which other tensor ranks have copies: of its slice with ZeRO 2 and 3.
  std::vector<at::Tensor> copied_gradients(int block) const;
  // Calls visit(part of a whole tied gradient, the same part of this rank's slice) for embedding and head.
  template <typename Visit>
  void for_tied_parts(const at::Tensor& whole, Visit visit) const;
  // Those of `stage`: data × context × copies of the model; of its experts apart, fewer by those that divide them.
  Holders holders_of(int stage, bool experts) const;
  // True if this rank counts `parameter` in a norm.
  bool counts(const ShardedParameter& parameter) const {
    return (parameter.meta.shard_dim >= 0 || at_.tensor == 0) && parameter.meta.same_as.empty() &&
           !parameter.meta.balances;
  }
  // The pieces of a parameter that this rank counts and saves: all but keys and values that a lower tensor rank has
  // too.
  std::vector<Piece> own_pieces(const ShardedParameter& parameter) const;
  FlatRange own_range(const ShardedParameter& parameter, std::int64_t begin, std::int64_t end) const;
  // Calls visit(bucket) for the blocks of `stage` (none: of every stage of this rank).
  template <typename Visit>
  void for_each(int stage, Visit visit) const;

  const Bundle& bundle_;
  Coordinates at_;
  at::Device device_;
  std::optional<ExpertPlace> experts_;  // where experts are apart
  int slice_count_ = 1;                 // of dense buckets
  std::map<Key, Bucket> buckets_;
  std::vector<WaitingGradient> waiting_;
};

}  // namespace slipway::exec
