// Bundles with held-out micro-batches in their bubbles.
#pragma once

#include <gtest/gtest.h>

#include "models/machine/priced_cluster.h"
#include "schedules/check/check.h"
#include "schedules/fill/evaluation.h"
#include "schedules/time/durations.h"
#include "tests/support/hand_graph.h"
#include "tests/support/tiny_runs.h"

namespace slipway::test {

constexpr int held_out_micro_batches = 3;

inline std::string held_out_text() {
  const std::string path = temporary_folder().path("held-out.txt");
  std::ofstream out(path);
  for (int i = 0; i < 90; ++i) out << "what nobody trained on " << i * 7 % 11 << "; ";
  return path;
}

// `item_s`: an item's time in the graph, where a forward takes 1 and a backward 2.
inline Bundle evaluating(const Step& input, double item_s) {
  Bundle bundle = tiny_bundle(input);
  const PricedCluster cluster = hand_cluster(1, rank_count(input.layout), 1e9, 1e-6);
  const Durations durations = unit_durations(bundle.graph);
  BubbleWork bubble_work = evaluation_bubble_work(bundle.graph, cluster, durations, held_out_micro_batches);
  for (BubbleTask& item : bubble_work.items) item.seconds = item.task.communicator == none ? item_s : 0.01;
  bundle.graph = fill(bundle.graph, durations, bubble_work).graph;
  bundle.graph.step.fill = Fill::evaluation;
  for (const Violation& violation : check_graph(bundle.graph)) ADD_FAILURE() << describe(bundle.graph, violation);
  bundle.run.evaluation_data = held_out_text();
  return bundle;
}

}  // namespace slipway::test
