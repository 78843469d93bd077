// Levers of the schedule: the order of passes, and the stages of a pipeline rank.
#include "scenarios/search/levers.h"
#include "schedules/step/action.h"

namespace slipway::scenarios {
namespace {

constexpr const char* no_pipeline = "one pipeline rank: every schedule is the same";

// A schedule with the chunks that it has unless the scenario says otherwise.
Lever schedule_lever(const Schedule& schedule) {
  return {"schedule " + schedule.name, [&schedule](Scenario& scenario) -> std::string {
            Step& step = scenario.step;
            if (step.layout.pipeline == 1) return no_pipeline;
            if (step.actions != nullptr) return "the order of passes is that of schedule.csv";
            if (step.schedule == schedule.name) return "it is the scenario's own";
            set_schedule(step, schedule);
            step.layout.chunks = schedule.default_chunks;
            step.slices = schedule.default_slices;
            step.group = 0;
            return "";
          }};
}

// The default order with so many stages on each rank.
Lever chunks_lever(int chunks) {
  return {"interleaved, " + std::to_string(chunks) + " chunks", [chunks](Scenario& scenario) -> std::string {
            Step& step = scenario.step;
            if (step.layout.pipeline == 1) return no_pipeline;
            if (step.actions != nullptr) return "the order of passes is that of schedule.csv";
            const Schedule& schedule = default_schedule(chunks);
            if (step.schedule == schedule.name && step.layout.chunks == chunks) return "it is the scenario's own";
            set_schedule(step, schedule);
            step.layout.chunks = chunks;
            step.slices = 1;
            return "";
          }};
}

}  // namespace

// Schedules with two copies of the model take twice the memory for weights: `slipway study` compares them. TeraPipe's
// slices are for causal models whose micro-batches are few.
std::vector<Lever> schedule_levers() {
  std::vector<Lever> levers;
  for (const Schedule& schedule : all_schedules())
    if (schedule.copies == 1 && schedule.interleaves.empty()) levers.push_back(schedule_lever(schedule));
  for (const int chunks : {2, 3, 4, 5, 8}) levers.push_back(chunks_lever(chunks));
  return levers;
}

}  // namespace slipway::scenarios
