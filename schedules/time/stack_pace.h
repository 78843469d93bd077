// Applies a stack profile to a cluster: the seconds of a layer, the head and each kind of message in a trainer's steps,
// for one model, shape and layout.
//
//   StepParts (models/trainers/stack.h)                  what every engine prices from
//     layer, head               ÷ operators ──► Machine::layer_pace, head_pace
//     collectives, transfer,    ÷ ring bytes ─► Cluster::message_costs, by axis
//     reduction                                 (visible time of a context ring: the layer's pace)
//     fixed                     ──────────────► Machine::step_overhead
//
// So the simulator, the bounds of a search and the formula scored against published runs use the same seconds for a
// layer. The simulator adds the order of tasks, overlap and contention.
// Guarded by tests/schedules/stack_pace_test.cpp: simulated steps against each trainer's formula.
#pragma once

#include "models/machine/machine.h"
#include "models/trainers/stack.h"
#include "schedules/lower/lowering.h"

namespace slipway::schedules {

// The quantities of a run that a trainer's formula needs. Throws std::invalid_argument for layers of several shapes and
// for a machine without a peak or memory bandwidth.
StepWork step_work_of(const Step& step, const Machine& machine, int gpus_per_node);

// Names of the model's layer features that no trainer's formula knows. Their operators get the pace that the formula
// gives to a layer without them.
std::vector<const char*> unknown_to_formulas(const Model& model);

// Throws std::invalid_argument as step_work_of, and when the profile was never fitted on a machine of the cluster.
Cluster at_pace(Cluster cluster, const Stack& stack, const Step& step);

}  // namespace slipway::schedules
