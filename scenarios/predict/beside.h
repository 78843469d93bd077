// Two scenarios trained at the same time in one cluster: the step time of each, alone and beside the other.
//
//   a.yaml   nodes 0 … m−1 ─┐
//                            ├─ the fabrics of a, with room for both     packed: a's nodes, then b's
//   b.yaml   nodes m … ─────┘                                            alternate: node by node, or GPU by GPU
//
// Both run step after step until each has had some periods beside the other. A period is the mean distance between
// starts of steps on the slowest rank while both run. Alone means the same ranks on the same GPUs without the other.
// What leaves the step alone unsure (step_interval.h) is taken to do the same to the step beside the other.
// Guarded by tests/scenarios/simulate_command_test.cpp.
#pragma once

#include <array>
#include <functional>
#include <optional>

#include "models/model/names.h"
#include "scenarios/predict/answer_keys.h"
#include "scenarios/predict/prepared_step.h"

namespace slipway::scenarios {

enum class Interleaving : std::uint8_t { packed, alternate_nodes, alternate_gpus };
inline constexpr std::array interleaving_names{Named{Interleaving::packed, "packed"},
                                               Named{Interleaving::alternate_nodes, "alternate-nodes"},
                                               Named{Interleaving::alternate_gpus, "alternate-gpus"}};

struct Neighbour {
  std::string name;
  int gpus = 0;
  double alone_s = 0, beside_s = 0;  // seconds of a step
  int periods = 0;                   // number of periods in the mean beside_s
  std::optional<double> width;       // 90 of 100 measured steps lie within a factor e^±width of each; of its interval
};
using Neighbours = std::array<Neighbour, 2>;

// `progress` gets the name of the current simulation and its share done. Throws UsageError for scenarios that cannot be
// neighbours.
Neighbours beside(const Scenario& first, const Scenario& second, Interleaving interleaving,
                  const std::function<void(const std::string& what, double done_share)>& progress);

std::string beside_text(const Neighbours& neighbours);
// The description of --json.
const Description<Neighbours>& neighbours_description();

}  // namespace slipway::scenarios
