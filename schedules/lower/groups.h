// The communicators of a layout, numbered in a fixed order: tensor groups and those inside them
// with the same key-value heads, context groups, data groups, the groups of
// experts, embedding pairs, the world, then pipeline pairs as they are first used. A group of one has no communicator.
#pragma once

#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "schedules/graph/task_graph.h"

namespace slipway::schedules {

class Groups {
 public:
  // Embedding pairs exist only for a tied head, the world only when a scalar is reduced over it. A data group joins the
  // members of all pipeline ranks that hold a copy of the same part; parts on the same ranks share it.
  // With representative ranks, only groups with a lowered member exist, and a Group lists only its lowered members.
  // Their communicators still list all ranks. Where ZeRO 2 or 3 cuts embedding and head into slices that do not match,
  // the pairs of all replicas are one group. Groups of experts exist where tokens are dispatched.
  struct Needs {
    bool tied_head = false, world = false, experts = false;
    int balanced = 1;  // data ranks whose experts a loss balances together
    TokenTraffic tokens = {};
    std::vector<int> kv_copies;  // of the model, with this tensor degree (models/model/model.h)
  };
  static Needs needs_of(const Step& step);
  Groups(const Layout& layout, const Placement& placement, const Needs& needs, const Representatives& representatives,
         std::vector<Communicator>& communicators);

  // Lowered members of one pipeline rank, numbered k = (data·C + context)·T + tensor (T: the lowered tensor ranks).
  int members() const { return replicas_ * tensor_degree_; }
  int rank(int pipeline, int member) const {
    return pipeline * per_pipeline_rank() + member / tensor_degree_ * layout_.tensor + member % tensor_degree_;
  }

  // groups: those of `axis` (tensor, context, expert, expert_tensor) inside a pipeline rank; of the data axis, those whose
  // experts a loss balances together. data_groups: those of the
  // data axis (data × context × copies) that reduce a stage, or the experts of a stage. A Group holds the communicator and its lowered members k in communicator
  // order. With copies, `ranks` holds the pipeline rank of each. Empty when the degree is 1.
  struct Group {
    int communicator = none;
    std::vector<int> members;
    std::vector<std::int32_t> ranks;
  };
  const std::vector<Group>& groups(Axis axis, int pipeline) const;
  // Tensor ranks with the same key-value head, `copies` in each group. Throws std::out_of_range for other copies than
  // those of Needs.
  const std::vector<Group>& groups_of_copies(int copies, int pipeline) const { return kv_.at(copies)[pipeline]; }
  const std::vector<Group>& data_groups(int stage, bool experts = false) const;
  // With hybrid sharding, data_groups are those of one copy of the shards; these join the ranks with the same shard.
  const std::vector<Group>& copies_of_shards(int stage) const;
  // Pair of the ranks with the first and the last stage of `copy`, for member k, or its group of pairs; none when they
  // are one rank.
  int embedding_pair(int copy, int member) const;
  // Communicator of all ranks; none when there is one rank or nothing to reduce.
  int world() const { return world_; }
  // Created on first use. `forward` = activations, else gradients.
  int pipeline_pair(int sender, int receiver, bool forward);
  // The copy lane of a rank to its host, or from it. Created on first use.
  int host_lane(int rank, bool to_host);

 private:
  int per_pipeline_rank() const { return member_count(layout_); }
  // Number of the place-th member of a pipeline rank among the lowered ones; none if it is not lowered.
  int lowered(int place) const;
  void add_inner_groups(Axis axis, const std::string& name, int degree, int stride,
                        std::vector<std::vector<Group>>& table);
  void add_data_groups(Axis axis, const char* name, int degree, int stride, std::vector<std::vector<Group>>& table);
  void add_embedding_pairs(int first, int last);
  void add_embedding_groups(int first, int last);
  // The groups of members k, k + stride, ... (`degree` of them) on each of `pipelines`.
  std::vector<Group> make_groups(Axis axis, const std::string& name, std::span<const std::int32_t> pipelines,
                                 int degree, int stride);

  Layout layout_;
  const Placement& placement_;
  int replicas_ = 1, tensor_degree_ = 1;  // lowered ones
  std::vector<Communicator>& communicators_;
  std::vector<std::vector<Group>> tensor_, context_, expert_, expert_tensor_, balanced_;  // per pipeline rank
  std::map<int, std::vector<std::vector<Group>>> kv_;                  // by copies, per pipeline rank
  std::vector<std::vector<Group>> data_, expert_data_, shard_copies_;  // per part
  std::vector<int> embedding_;
  int world_ = none;
  std::map<std::tuple<int, int, bool>, int> pairs_;
  std::map<std::pair<int, bool>, int> host_lanes_;
};

// Maps the communicators of a graph of representative ranks to their numbers in the graph of all ranks. A trace repeats
// for every rank the records of its representative rank, in the rank's own groups.
//
//   represented: tp of rank 0 is 0, dp of rank 0 is 4        all: tp of ranks 0..7 is 0, of 8..15 is 1, ..., dp of rank 5 is 13
//
// Guarded by tests/schedules/representatives_test.cpp: traces of representatives and of whole graphs are equal.

class GroupNumbers {
 public:
  explicit GroupNumbers(const TaskGraph& represented);
  // `name`: the communicator's name (a rank is in one of each name).
  int of(std::int32_t rank, const std::string& name) const { return numbers_.at({rank, name}); }

 private:
  std::map<std::pair<std::int32_t, std::string>, int> numbers_;
};

}  // namespace slipway::schedules
