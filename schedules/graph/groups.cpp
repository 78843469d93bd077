#include "schedules/graph/groups.h"

namespace slipway {

Groups::Groups(const Layout& layout, bool tied_head, bool needs_world, const Folding& folding,
               std::vector<Communicator>& communicators)
    : layout_(layout),
      replicas_(folding.replicas > 0 ? folding.replicas : layout.data * layout.context),
      tensor_degree_(folding.tensor > 0 ? folding.tensor : layout.tensor),
      communicators_(communicators) {
  add_inner_groups(Axis::tensor, "tp", tensor_);
  add_inner_groups(Axis::context, "cp", context_);
  add_inner_groups(Axis::data, "dp", data_);
  embedding_.assign(static_cast<std::size_t>(members()), none);
  const auto next_id = [&] { return static_cast<int>(communicators_.size()); };
  for (int k = 0; tied_head && layout.pipeline > 1 && k < members(); ++k) {
    embedding_[static_cast<std::size_t>(k)] = next_id();
    communicators_.push_back({"embedding", Axis::embedding, {rank(0, k), rank(layout.pipeline - 1, k)}});
  }
  if (needs_world && rank_count(layout) > 1) {
    world_ = next_id();
    communicators_.push_back({"world", Axis::world, {}});
    for (int r = 0; r < rank_count(layout); ++r) communicators_.back().ranks.push_back(r);
  }
}

int Groups::lowered(int place) const {
  const int replica = place / layout_.tensor, t = place % layout_.tensor;
  return replica < replicas_ && t < tensor_degree_ ? replica * tensor_degree_ + t : none;
}

void Groups::add_inner_groups(Axis axis, const char* name, std::vector<std::vector<Group>>& table) {
  table.resize(static_cast<std::size_t>(layout_.pipeline));
  const int tensor = layout_.tensor, context = layout_.context, all = per_pipeline_rank();
  const int degree = axis == Axis::tensor    ? tensor
                     : axis == Axis::context ? context
                                             : layout_.data * context;
  const int stride = axis == Axis::tensor ? 1 : tensor;
  if (degree == 1) return;
  for (int pipeline = 0; pipeline < layout_.pipeline; ++pipeline) {
    for (int first = 0; first < all; ++first) {
      if (first / stride % degree != 0 || lowered(first) == none) continue;
      Group group{static_cast<int>(communicators_.size()), {}};
      Communicator communicator{name, axis, {}};
      for (int place = first; place < first + degree * stride; place += stride) {
        if (lowered(place) != none) group.members.push_back(lowered(place));
        communicator.ranks.push_back(pipeline * all + place);
      }
      table[static_cast<std::size_t>(pipeline)].push_back(std::move(group));
      communicators_.push_back(std::move(communicator));
    }
  }
}

const std::vector<Groups::Group>& Groups::groups(Axis axis, int pipeline) const {
  const auto& table = axis == Axis::tensor ? tensor_ : axis == Axis::context ? context_ : data_;
  return table[static_cast<std::size_t>(pipeline)];
}

int Groups::embedding_pair(int member) const { return embedding_[static_cast<std::size_t>(member)]; }

int Groups::pipeline_pair(int sender, int receiver, bool forward) {
  const auto [at, is_new] =
      pairs_.try_emplace({sender, receiver, forward}, static_cast<int>(communicators_.size()));
  if (is_new) {
    const int per_stage = per_pipeline_rank();
    communicators_.push_back({std::string(forward ? "pp.forward." : "pp.backward.") +
                                  std::to_string(sender / per_stage) + "-" +
                                  std::to_string(receiver / per_stage),
                              Axis::pipeline,
                              {sender, receiver}});
  }
  return at->second;
}

}  // namespace slipway
