// A small pipeline of unit durations and bubble work that is not K-FAC's, for the tests of the filling pass.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "schedules/check/check.h"
#include "schedules/fill/fill.h"
#include "schedules/lower/lowering.h"
#include "schedules/time/durations.h"
#include "schedules/time/global_order.h"

namespace slipway::test {

// GPipe, two stages, two micro-batches, F = 2, B = 4, nothing else takes time:
//   rank 0 │ F F . . . B B │     gaps: rank 0 between 4 and 8; rank 1 from 14 to 14 + 2
//   rank 1 │ . F F B B . . │     period 2·3 + 4·3 = 18
struct UnitStep {
  TaskGraph graph;
  Durations durations;
  UnitStep() {
    Step input;
    input.model = llama(
        "small", {.layers = 2, .hidden = 64, .ffn = 128, .heads = 4, .kv_heads = 4, .vocab = 256, .sequence = 32});
    input.layout.pipeline = 2;
    input.schedule = "gpipe";
    input.global_batch = 2;
    graph = lower(input);
    for (TaskId id = 0; id < graph.tasks.size(); ++id) {
      const Work& work = graph.work(id);
      durations.push_back(work.kind != WorkKind::segment ? 0 : work.pass == Pass::forward ? 2 : 4);
    }
    set_global_order(graph, durations);
  }
  TaskId task(const std::string& label) const {
    for (TaskId id = 0; id < graph.tasks.size(); ++id)
      if (label_of(graph, id) == label) return id;
    ADD_FAILURE() << "no task " << label;
    return 0;
  }
};

inline BubbleWork no_bubble_work(int groups) {
  BubbleWork bubble_work;
  bubble_work.name = "test";
  Work work;
  work.kind = WorkKind::bubble_work;
  work.bubble_work = "test";
  work.suffix = ".item";
  bubble_work.works.push_back(work);
  bubble_work.groups = groups;
  return bubble_work;
}

// Items have their number as micro-batch number.
inline int add(BubbleWork& bubble_work, int rank, double seconds, BubbleGroup group = 0, std::vector<TaskId> after = {},
               std::vector<BubbleGroup> after_groups = {}, int priority = 0) {
  const int number = static_cast<int>(bubble_work.items.size());
  bubble_work.items.push_back({{TaskKind::bubble_work, rank, none, 0, number, 0},
                               seconds,
                               priority,
                               group,
                               std::move(after),
                               std::move(after_groups),
                               {}});
  return number;
}

inline std::string lane(const TaskGraph& graph, std::size_t rank) {
  std::string text;
  for (const TaskId id : graph.compute_order[rank])
    if (graph.tasks[id].kind != TaskKind::optimizer) text += (text.empty() ? "" : " ") + label_of(graph, id);
  return text;
}

inline void expect_sound(const UnitStep& step, const BubbleWork& bubble_work, const Filling& filling) {
  for (const Violation& v : check_graph(filling.graph)) ADD_FAILURE() << describe(filling.graph, v);
  for (const Violation& v : check_filling(step.graph, bubble_work, filling))
    ADD_FAILURE() << describe(filling.graph, v);
}

}  // namespace slipway::test
