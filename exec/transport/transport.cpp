#include "exec/transport/transport.h"

#include <algorithm>
#include <set>

#include "exec/transport/device.h"

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

at::ScalarType torch_dtype(Dtype dtype) {
  switch (dtype) {
    case Dtype::float64:
      return at::kDouble;
    case Dtype::float32:
    case Dtype::tf32:
      return at::kFloat;
    case Dtype::bfloat16:
      return at::kBFloat16;
    case Dtype::float16:
      return at::kHalf;
  }
  return at::kFloat;
}

}  // namespace slipway::exec
