#include "schedules/catalogue/two_directions.h"

namespace slipway::schedules {

std::optional<ShapeRefusal> refuse_two_directions(const std::string& name, const ScheduleShape& shape,
                                                  const std::string& instead) {
  if (shape.pipeline % 2 != 0) {
    return ShapeRefusal{name + " needs an even number of pipeline ranks, not " + std::to_string(shape.pipeline),
                        "set layout.pipeline to an even number or choose " + instead};
  }
  if (shape.chunks != 1) {
    return ShapeRefusal{name + " runs one stage per rank and direction, not " + std::to_string(shape.chunks),
                        "set layout.chunks to 1"};
  }
  if (const auto refusal = refuse_slices(name, shape)) return refusal;
  if (shape.micro_batches % 2 != 0) {
    return ShapeRefusal{name + " sends half of the micro-batches in each direction, but there are " +
                            std::to_string(shape.micro_batches),
                        "change schedule.global_batch or schedule.micro_batch so that their number is even"};
  }
  return {};
}

}  // namespace slipway::schedules
