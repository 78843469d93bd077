// Keys of `slipway plan --json`.
#include <array>

#include "scenarios/json_keys_basis.h"
#include "scenarios/json_summary.h"

namespace slipway {

std::span<const JsonKey> plan_json_keys() {
  static constexpr auto keys = with_basis_keys(std::array{
      JsonKey{"scenario", "text", "name of the scenario"},
      JsonKey{"pace", "text", "trainer at whose pace work was priced; null: by the machine profiles alone"},
      JsonKey{"complete", "bool", "false: interrupted, the answer is the best so far"},
      JsonKey{"legal", "count", "layouts of the space that can be run"},
      JsonKey{"too_large", "count",
              "of these: left out because they need more than memory_share (closed form, or simulated)"},
      JsonKey{"simulated", "count", "of these: simulated, because their bound left a chance"},
      JsonKey{"memory_share", "0..1", "of a GPU's memory that a layout may use"},
      JsonKey{"best", "list",
              "fastest first: tensor, sequence_parallel, pipeline, chunks, context, data, zero, schedule, "
              "micro_batch, recompute; bound_s, step_time_s, mfu, compute_share, bubble_share, "
              "exposed_comm_share, tokens_per_s, days, gpu_hours and cost as in simulate; memory_bytes and memory_share, "
              "the largest of what `slipway memory` knows, of the fullest pipeline rank; timeline_bytes, the simulated "
              "peak; on uneven clusters split (layers per stage) and placement (order of nodes); why it wins over the next"},
      JsonKey{"pareto", "list", "rows as in best, each with less memory than every faster one"},
      JsonKey{"best_too_large", "map",
              "the fastest row, by its bound, that needs too much memory; without step_time_s bound_s and "
              "memory_bytes are lower bounds; present when too_large > 0",
              true},
      JsonKey{"closest", "map", "the row that needs the least memory; present when nothing fits", true},
      JsonKey{"remedies", "list",
              "changes of the scenario with which a layout fits, and which; present when nothing fits", true},
      JsonKey{"screening_s", "s", "wall time of the closed form of all layouts"},
      JsonKey{"simulation_s", "s", "wall time of the rest"},
      JsonKey{"launch_arguments", "list", "the trainer's program and arguments; present with --emit", true},
      JsonKey{"launch_row", "count", "of best, from 1: the row that they launch, the first that the trainer runs as planned",
              true},
      JsonKey{"may_be_refused", "list", "why the trainer may refuse the winner, or run another layout; why it refuses any", true},
      JsonKey{"not_expressed", "list", "what else of that row the trainer cannot express; present with --emit", true},
      JsonKey{"to_be_added", "list", "arguments that a scenario does not say, or that are slipway's defaults", true},
  });
  return keys;
}

}  // namespace slipway
