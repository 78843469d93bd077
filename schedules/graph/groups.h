// The communicators of a layout, numbered in a fixed order: tensor groups, context groups, data groups,
// embedding pairs, the world, then pipeline pairs as they are first used. Groups of one have none.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "schedules/program.h"

namespace slipway {

class Groups {
 public:
  // Embedding pairs exist only for a tied head, the world only when a scalar is reduced over it.
  // `one_member`: only the groups of member 0 of each pipeline rank, and only it among their members; their
  // communicators name all ranks all the same.
  Groups(const Layout& layout, bool tied_head, bool needs_world, bool one_member,
         std::vector<Communicator>& communicators);

  // Members of one pipeline rank are numbered k = (data·C + context)·T + tensor; those that are lowered.
  int members() const { return one_member_ ? 1 : per_pipeline_rank(); }
  int rank(int pipeline, int member) const { return pipeline * per_pipeline_rank() + member; }

  // The groups of `axis` (tensor, context, data = data × context) inside a pipeline rank: for each its
  // communicator and its members k in communicator order. Empty when the degree is 1.
  struct Group {
    int communicator = none;
    std::vector<int> members;
  };
  const std::vector<Group>& groups(Axis axis, int pipeline) const;
  // Pair of first and last pipeline rank for member k; none when they are one rank.
  int embedding_pair(int member) const;
  // All ranks; none when there is one rank or nothing to reduce.
  int world() const { return world_; }
  // Created on first use. `forward` = activations, else gradients.
  int pipeline_pair(int sender, int receiver, bool forward);

 private:
  int per_pipeline_rank() const { return layout_.data * layout_.context * layout_.tensor; }
  void add_inner_groups(Axis axis, const char* name, std::vector<std::vector<Group>>& table);

  Layout layout_;
  bool one_member_ = false;
  std::vector<Communicator>& communicators_;
  std::vector<std::vector<Group>> tensor_, context_, data_;
  std::vector<int> embedding_;
  int world_ = none;
  std::map<std::tuple<int, int, bool>, int> pairs_;
};

}  // namespace slipway
