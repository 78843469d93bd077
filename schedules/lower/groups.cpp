#include "schedules/lower/groups.h"

namespace slipway::schedules {

Groups::Needs Groups::needs_of(const Step& step) {
  return {reads_table(blocks_of(step.model).back()),
          joins_all_ranks(step),
          dispatches_tokens(step),
          balanced_replicas(step),
          token_traffic(step.model, step.layout.dispatcher),
          kv_copies(step.model, step.layout.tensor)};
}

Groups::Groups(const Layout& layout, const Placement& placement, const Needs& needs,
               const Representatives& representatives, std::vector<Communicator>& communicators)
    : layout_(layout),
      placement_(placement),
      replicas_(representatives.replicas > 0 ? representatives.replicas : layout.data * layout.context),
      tensor_degree_(representatives.tensor > 0 ? representatives.tensor : layout.tensor),
      communicators_(communicators) {
  const int t = layout.tensor;
  add_inner_groups(Axis::tensor, "tp", t, 1, tensor_);
  for (const int copies : needs.kv_copies)
    add_inner_groups(Axis::tensor, "kv" + std::to_string(copies), copies, 1, kv_[copies]);
  add_inner_groups(Axis::context, "cp", layout.context, t, context_);
  add_data_groups(Axis::data, "dp", shards_of(layout), t, data_);
  if (layout.replicate > 1)
    add_data_groups(Axis::data, "dp_copies", layout.replicate, t * shards_of(layout), shard_copies_);
  if (needs.balanced > 1) add_inner_groups(Axis::data, "dp_load", needs.balanced, t * layout.context, balanced_);
  if (needs.experts) {
    const int cut = expert_tensor_of(sharding_of(layout));
    add_inner_groups(Axis::expert_tensor, "etp", cut, 1, expert_tensor_);
    add_inner_groups(Axis::expert, "ep", layout.expert, cut, expert_);
    for (Communicator& communicator : communicators)
      if (communicator.axis == Axis::expert) communicator.tokens = needs.tokens;
    add_data_groups(Axis::expert_data, "edp", expert_data_of(layout), layout.expert * cut, expert_data_);
  }
  for (int copy = 0; copy < placement.copies; ++copy) {
    const int parts = placement.parts();
    const int first = placement.rank[copy * parts], last = placement.rank[(copy + 1) * parts - 1];
    if (needs.tied_head && layout.zero >= 2 && layout.data * layout.context > 1)
      add_embedding_groups(first, last);
    else if (needs.tied_head && first != last)
      add_embedding_pairs(first, last);
    else
      embedding_.insert(embedding_.end(), static_cast<std::size_t>(members()), none);
  }
  if (needs.world && rank_count(layout) > 1) {
    world_ = static_cast<int>(communicators_.size());
    communicators_.push_back({"world", Axis::world, {}});
    for (int r = 0; r < rank_count(layout); ++r) communicators_.back().ranks.push_back(r);
  }
}

void Groups::add_embedding_pairs(int first, int last) {
  for (int k = 0; k < members(); ++k) {
    embedding_.push_back(static_cast<int>(communicators_.size()));
    communicators_.push_back({"embedding", Axis::embedding, {rank(first, k), rank(last, k)}});
  }
}

void Groups::add_embedding_groups(int first, int last) {
  const int begin = static_cast<int>(communicators_.size());
  for (int t = 0; t < tensor_degree_; ++t) {
    Communicator& group = communicators_.emplace_back(Communicator{"embedding", Axis::embedding, {}});
    for (const int pipeline : {first, last}) {
      for (int place = t; place < per_pipeline_rank(); place += layout_.tensor)
        group.ranks.push_back(pipeline * per_pipeline_rank() + place);
      if (first == last) break;
    }
  }
  for (int k = 0; k < members(); ++k) embedding_.push_back(begin + k % tensor_degree_);
}

int Groups::lowered(int place) const {
  const int replica = place / layout_.tensor, t = place % layout_.tensor;
  return replica < replicas_ && t < tensor_degree_ ? replica * tensor_degree_ + t : none;
}

std::vector<Groups::Group> Groups::make_groups(Axis axis, const std::string& name,
                                               std::span<const std::int32_t> pipelines, int degree, int stride) {
  std::vector<Group> groups;
  if (static_cast<std::size_t>(degree) * pipelines.size() == 1) return groups;
  const int all = per_pipeline_rank();
  for (int first = 0; first < all; ++first) {
    if (first / stride % degree != 0) continue;
    bool any = false;
    for (int place = first; place < first + degree * stride; place += stride) any = any || lowered(place) != none;
    if (!any) continue;
    Group group{static_cast<int>(communicators_.size()), {}, {}};
    Communicator communicator{name, axis, {}};
    for (const std::int32_t pipeline : pipelines) {
      for (int place = first; place < first + degree * stride; place += stride) {
        communicator.ranks.push_back(pipeline * all + place);
        if (lowered(place) == none) continue;
        group.members.push_back(lowered(place));
        group.ranks.push_back(communicator.ranks.back());
      }
    }
    groups.push_back(std::move(group));
    communicators_.push_back(std::move(communicator));
  }
  return groups;
}

void Groups::add_inner_groups(Axis axis, const std::string& name, int degree, int stride,
                              std::vector<std::vector<Group>>& table) {
  for (std::int32_t pipeline = 0; pipeline < layout_.pipeline; ++pipeline)
    table.push_back(make_groups(axis, name, std::span(&pipeline, 1), degree, stride));
}

void Groups::add_data_groups(Axis axis, const char* name, int degree, int stride,
                             std::vector<std::vector<Group>>& table) {
  std::map<std::vector<std::int32_t>, std::size_t> known;  // by the pipeline ranks that share the weights
  for (int part = 0; part < placement_.parts(); ++part) {
    const std::vector<std::int32_t> holders = placement_.holders(part);
    const auto [at, is_new] = known.try_emplace(holders, table.size());
    table.push_back(is_new ? make_groups(axis, name, holders, degree, stride) : table[at->second]);
  }
}

const std::vector<Groups::Group>& Groups::groups(Axis axis, int pipeline) const {
  switch (axis) {
    case Axis::tensor:
      return tensor_[pipeline];
    case Axis::expert:
      return expert_[pipeline];
    case Axis::expert_tensor:
      return expert_tensor_[pipeline];
    case Axis::data:
      return balanced_[pipeline];
    default:
      return context_[pipeline];
  }
}

const std::vector<Groups::Group>& Groups::data_groups(int stage, bool experts) const {
  return (experts ? expert_data_ : data_)[placement_.part_of(stage)];
}

const std::vector<Groups::Group>& Groups::copies_of_shards(int stage) const {
  static const std::vector<Group> none_of_them;
  return shard_copies_.empty() ? none_of_them : shard_copies_[placement_.part_of(stage)];
}

int Groups::embedding_pair(int copy, int member) const { return embedding_[copy * members() + member]; }

int Groups::pipeline_pair(int sender, int receiver, bool forward) {
  const auto [at, is_new] = pairs_.try_emplace({sender, receiver, forward}, static_cast<int>(communicators_.size()));
  if (is_new) {
    const int per_stage = per_pipeline_rank();
    communicators_.push_back({std::string(forward ? "pp.forward." : "pp.backward.") +
                                  std::to_string(sender / per_stage) + "-" + std::to_string(receiver / per_stage),
                              Axis::pipeline,
                              {sender, receiver}});
  }
  return at->second;
}

int Groups::host_lane(int rank, bool to_host) {
  const auto [at, is_new] = host_lanes_.try_emplace({rank, to_host}, static_cast<int>(communicators_.size()));
  if (is_new) communicators_.push_back({to_host ? "to_host" : "from_host", Axis::host, {rank}});
  return at->second;
}

GroupNumbers::GroupNumbers(const TaskGraph& represented) {
  const Layout& layout = represented.step.layout;
  std::vector<Communicator> all;
  Groups groups(layout, represented.placement, Groups::needs_of(represented.step), Representatives{}, all);
  const int members = rank_count(layout) / layout.pipeline;
  for (const Communicator& pair :
       represented.communicators) {  // all members of a pipeline rank use theirs first at once
    if (pair.axis == Axis::host) {
      const int first = pair.ranks[0] / members * members;
      for (int member = 0; member < members; ++member) groups.host_lane(first + member, pair.name == "to_host");
    }
    if (pair.axis != Axis::pipeline) continue;
    const int sender = pair.ranks[0] / members * members, receiver = pair.ranks[1] / members * members;
    const bool forward = pair.name.starts_with("pp.forward");
    for (int member = 0; member < members; ++member) groups.pipeline_pair(sender + member, receiver + member, forward);
  }
  for (std::size_t c = 0; c < all.size(); ++c)
    for (const std::int32_t rank : all[c].ranks) numbers_[{rank, all[c].name}] = static_cast<int>(c);
}

}  // namespace slipway::schedules
