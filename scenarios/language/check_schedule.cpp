// Does the schedule run on this layout, model and number of micro-batches?
#include <algorithm>

#include "scenarios/language/check_scenario.h"
#include "schedules/graph/grid.h"

namespace slipway {
namespace {

std::string str(std::int64_t number) { return std::to_string(number); }

// The grid of the nearest larger shape that the schedule can run, for a picture of what is missing; empty when
// more micro-batches or ranks would not help.
std::string grid_of_nearest(const Schedule& schedule, ScheduleShape shape) {
  // As many micro-batches as show the rule: their number modulo twice the ranks stays.
  const int whole = 2 * shape.pipeline;
  if (shape.micro_batches > 2 * whole) shape.micro_batches = whole + shape.micro_batches % whole;
  constexpr int most_rows = 16;
  if (shape.pipeline > most_rows || shape.chunks > most_rows) return "";
  ScheduleShape larger = shape;
  const auto refused = [&] { return !schedule.refuse(larger).empty(); };
  for (const int more_ranks : {0, 1}) {
    larger.pipeline = shape.pipeline + more_ranks;
    larger.micro_batches = shape.micro_batches;
    while (refused() && larger.micro_batches < shape.micro_batches + whole) ++larger.micro_batches;
    if (!refused()) break;
  }
  if (refused()) return "";
  const ActionLists lists = schedule.actions(larger);
  std::vector<GridCell> missing;
  for (int row = 0; row < larger.pipeline; ++row) {
    const auto& list = lists[static_cast<std::size_t>(row)];
    for (int i = 0; i < static_cast<int>(list.size()); ++i)
      if (row >= shape.pipeline || list[static_cast<std::size_t>(i)].micro_batch >= shape.micro_batches)
        missing.push_back({row, i});
  }
  return "\nwith what is missing marked:\n" + grid(lists, missing, {}, larger.pipeline * larger.chunks);
}

// Number of micro-batches per pipeline, 0 after an error. `has_data`: layout.data is known as a number. That
// holds also where it was refused because of the product of ranks: the batch is then judged by what is
// written, and where no degree is known by micro_batch alone, so that both mistakes are told at once.
std::int64_t micro_batches(Settings& settings, const Scenario& scenario, bool has_data) {
  if (!settings.good({"schedule.global_batch", "schedule.micro_batch"})) return 0;
  const std::int64_t batch = scenario.schedule.global_batch;
  const std::int64_t unit = scenario.schedule.micro_batch * (has_data ? scenario.layout.data : 1);
  if (batch % unit != 0) {
    const std::int64_t below = batch / unit * unit;
    settings.refuse("schedule.global_batch",
                    "global_batch = " + str(batch) + " is not divisible by micro_batch " +
                        str(scenario.schedule.micro_batch) +
                        (has_data ? " x data " + str(scenario.layout.data) + " = " + str(unit) : "") +
                        "; allowed: multiples of " + str(unit),
                    "set it to " + (below > 0 ? str(below) + " or " : "") + str(below + unit));
    return 0;
  }
  if (!has_data || !settings.good({"layout.data"})) return 0;
  if (batch / unit > 1'000'000) {
    settings.refuse("schedule.global_batch",
                    "that is " + str(batch / unit) + " micro-batches per pipeline; allowed: up to 1000000",
                    "raise schedule.micro_batch or lower schedule.global_batch");
    return 0;
  }
  return batch / unit;
}

std::int64_t rows_of(const Block& block) { return std::max<std::int64_t>(1, block.experts_per_token); }

// Numbers of a layer's widest tensor are counted as 64-bit integers, with factors below a hundred on them.
bool is_countable(Settings& settings, const Scenario& scenario) {
  if (!settings.good({"model.sequence", "schedule.micro_batch"})) return true;
  constexpr double most = 9e16;
  const Model& model = scenario.model;
  std::int64_t widest = 0;
  for (const BlockRun& run : model.runs)
    widest = std::max({widest, rows_of(run.block) * std::max(run.block.hidden, run.block.ffn), run.block.experts, run.block.vocab});
  const double tokens = static_cast<double>(scenario.schedule.micro_batch) * static_cast<double>(model.sequence);
  if (tokens * static_cast<double>(widest) <= most) return true;
  settings.refuse("schedule.micro_batch",
                  "micro_batch " + str(scenario.schedule.micro_batch) + " x model.sequence " + str(model.sequence) + " x " +
                      str(widest) + " (the largest of hidden, ffn and vocab, with experts those of a token together) is more than can be counted; allowed: "
                      "products up to 9e16",
                  "lower schedule.micro_batch or model.sequence");
  return false;
}

// What the lowering would refuse because of how the schedule runs, whatever its shape.
void check_combinations(Settings& settings, const Scenario& scenario, const Schedule& schedule) {
  const Layout& layout = scenario.layout;
  if (schedule.copies > 1 && layout.zero >= 2 && settings.good({"layout.zero"}))
    settings.refuse("layout.zero",
                    "layout.zero " + str(layout.zero) + " reduces the gradients of every micro-batch, but " +
                        schedule.name + " sends them through different copies of the model; allowed: 0, 1",
                    "set layout.zero to 0 or 1, or choose another schedule");
  if (scenario.schedule.slices == 1) return;
  if (layout.context > 1 && settings.good({"layout.context"}))
    settings.refuse("layout.context",
                    "context parallelism and slices both cut the sequence; allowed with schedule.slices " +
                        str(scenario.schedule.slices) + ": 1",
                    "set layout.context to 1 or schedule.slices to 1");
  if (scenario.schedule.recompute == Recompute::full && settings.good({"schedule.recompute"}))
    settings.refuse("schedule.recompute",
                    "a slice attends to the keys and values of the slices before it, which full recomputation "
                    "would have to make again for each of them; allowed with slices: none, selective",
                    "set schedule.recompute to selective or schedule.slices to 1");
}

}  // namespace

void check_schedule(Settings& settings, const Scenario& scenario, bool has_model, bool has_data) {
  if (has_model && !is_countable(settings, scenario)) return;
  const std::int64_t count = micro_batches(settings, scenario, has_data);
  const Schedule* schedule = schedule_named(scenario.schedule.name);
  if (!settings.good({"schedule.name", "schedule.slices", "layout.pipeline", "layout.chunks"}) ||
      schedule == nullptr)
    return;
  const Block* block = has_model ? first_block(scenario.model, BlockKind::transformer) : nullptr;
  if (schedule->needs_causal && !scenario.schedule.actions && block != nullptr && !block->causal)
    settings.refuse("schedule.name",
                    schedule->name + " needs causal attention, which " + scenario.model.name +
                        " does not have; allowed: schedules without slices",
                    "choose another schedule (slipway list schedules)");
  if (has_model && scenario.model.sequence % scenario.schedule.slices != 0) {
    check_divides(settings, "schedule.slices", scenario.schedule.slices, "model.sequence",
                  scenario.model.sequence);
    return;
  }
  check_combinations(settings, scenario, *schedule);
  if (count == 0) return;
  const ScheduleShape shape{scenario.layout.pipeline, scenario.layout.chunks, static_cast<int>(count),
                            scenario.schedule.slices, schedule->copies};
  if (scenario.schedule.actions) return check_csv(settings, scenario, shape);
  if (schedule->refuse == nullptr) return;
  const std::string reason = schedule->refuse(shape);
  if (reason.empty()) return;
  const std::size_t cut = reason.find("; ");
  settings.refuse(
      "schedule.name",
      reason.substr(0, cut) + "; allowed: shapes that the schedule can run (slipway list schedules)",
      (cut == std::string::npos ? "change the layout or choose another schedule" : reason.substr(cut + 2)) +
          grid_of_nearest(*schedule, shape));
}

}  // namespace slipway
