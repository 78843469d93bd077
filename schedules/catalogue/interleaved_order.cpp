#include "schedules/catalogue/interleaved_order.h"

#include <algorithm>

namespace slipway::schedules {

std::vector<int> groups_of(const ScheduleShape& shape) {
  const int count = std::max(1, shape.micro_batches / shape.pipeline);
  std::vector<int> sizes(static_cast<std::size_t>(count), shape.micro_batches / count);
  for (int i = 0; i < shape.micro_batches % count; ++i) ++sizes[i];
  return sizes;
}

std::vector<Action> turns_of(const ScheduleShape& shape, int rank, Pass pass) {
  std::vector<Action> list;
  int first = 0;
  for (const int size : groups_of(shape)) {
    for (int i = 0; i < shape.chunks; ++i) {
      const int chunk = pass == Pass::forward ? i : shape.chunks - 1 - i;
      for (int m = first; m < first + size; ++m) list.push_back({pass, chunk * shape.pipeline + rank, m});
    }
    first += size;
  }
  return list;
}

int warm_up_of(const ScheduleShape& shape, int rank) {
  return (shape.pipeline - rank - 1) * 2 + (shape.chunks - 1) * groups_of(shape).front();
}

}  // namespace slipway::schedules
