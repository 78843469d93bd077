#include "schedules/graph/group_numbers.h"

#include "schedules/graph/groups.h"

namespace slipway {

GroupNumbers::GroupNumbers(const TaskGraph& folded) {
  const Layout& layout = folded.layout;
  std::vector<Communicator> all;
  Groups groups(layout, folded.placement, blocks_of(folded.model).back().tied, joins_all_ranks(folded), Folding{}, all);
  const int members = rank_count(layout) / layout.pipeline;
  for (const Communicator& pair : folded.communicators) {  // all members of a pipeline rank use theirs first at once
    if (pair.axis != Axis::pipeline) continue;
    const int sender = pair.ranks[0] / members * members, receiver = pair.ranks[1] / members * members;
    const bool forward = pair.name.starts_with("pp.forward");
    for (int member = 0; member < members; ++member)
      groups.pipeline_pair(sender + member, receiver + member, forward);
  }
  for (std::size_t c = 0; c < all.size(); ++c)
    for (const std::int32_t rank : all[c].ranks) numbers_[{rank, all[c].name}] = static_cast<int>(c);
}

}  // namespace slipway
