#include "exec/transport/transport.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>

namespace slipway::exec {

int member_of(const Group& group, int rank) {
  const auto found = std::find(group.ranks.begin(), group.ranks.end(), rank);
  if (found == group.ranks.end())
    throw std::logic_error("rank " + std::to_string(rank) + " is no member of communicator " + group.name);
  return static_cast<int>(found - group.ranks.begin());
}

Reach reach_of(const std::vector<int>& ranks, int hosted) {
  std::set<int> processes;
  for (const int rank : ranks) processes.insert(rank / hosted);
  if (processes.size() == 1) return Reach::inside;
  return processes.size() == ranks.size() ? Reach::apart : Reach::mixed;
}

}  // namespace slipway::exec
