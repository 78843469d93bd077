// A stack profile laid over a cluster: how long a layer, the head and each kind of message take in a trainer's
// steps, for one model, shape and layout.
//
//   StepParts (models/trainers/stack.h)                  what every engine prices from
//     layer, head               ÷ operators ──► Machine::layer_pace, head_pace
//     collectives, transfer,    ÷ ring bytes ─► Cluster::message_costs, by axis
//     reduction                                 (what a ring of keys and values shows: the layer's pace)
//     fixed                     ──────────────► Machine::step_overhead
//
// So the simulator, the bounds of a search and the formula that is scored against published runs agree about a layer,
// and what the simulator adds is what it is for: the order of tasks, overlap, contention.
// Guarded by tests/schedules/stack_pace_test.cpp: simulated steps against each trainer's formula.
#pragma once

#include "models/machine/machine.h"
#include "models/trainers/stack.h"
#include "schedules/lower/lowering.h"

namespace slipway::schedules {

// The figures of a run that a trainer's formula needs. Throws std::invalid_argument for layers of several shapes and
// for a machine without a peak or memory bandwidth.
StepWork step_work_of(const Step& step, const Machine& machine, int gpus_per_node);

// What of the model's layers no trainer's formula knows, in words. Its operators take the pace that the formula gives those of
// a layer without.
std::vector<const char*> unknown_to_formulas(const Model& model);

// Throws std::invalid_argument when the profile was never fitted on a machine of the cluster, and as step_work_of.
Cluster at_pace(Cluster cluster, const Stack& stack, const Step& step);

}  // namespace slipway::schedules
