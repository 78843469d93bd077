// The rule book: which steps there are. A rule stands here and nowhere else.
//
//   rules.cpp ──┬─► refusals(step), refusals(step, cluster)   with text: the loader adds file and line
//               ├─► legal(step)                               without text: the lowering's assertion
//               └─► rules_of(keys), legal(step, rules)        a search asks each rule as soon as its keys are decided
//
// A rule names the keys that it reads. It is not asked when one of them was refused before, so one mistake makes one
// refusal. Schedules have their own rules about shapes (Schedule::refuse); the rule of schedule.name asks them.
// Guarded by tests/schedules/rules_test.cpp and tests/scenarios/scenario_errors_test.cpp.
#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "models/machine/machine.h"
#include "schedules/step/refusal.h"
#include "schedules/step/step.h"

namespace slipway::schedules {

constexpr std::int64_t most_micro_batches = 1'000'000;  // per pipeline and step

struct Rule;  // rules.cpp

// False for keys whose values are not known or were refused. "model" stands for all keys of the model.
using KeyIsGood = std::function<bool(std::string_view key)>;

// All refusals of the step, in the order of the book; empty: the step can be lowered.
std::vector<Refusal> refusals(const Step& step, const KeyIsGood& good = nullptr);
// The same, and those of the step on this cluster: ranks, number types, order of nodes, fabrics, block times.
std::vector<Refusal> refusals(const Step& step, const Cluster& cluster, const KeyIsGood& good = nullptr);

// True if refusals(step) is empty.
bool legal(const Step& step);

// For a search that decides keys one after another: the rules that read none of these keys; those that read any of `keys`
// and none of `undecided`; and whether a step breaks none of some rules.
using KeyNames = std::initializer_list<std::string_view>;
std::vector<const Rule*> rules_without(KeyNames undecided);
std::vector<const Rule*> rules_of(KeyNames keys, KeyNames undecided = {});
bool legal(const Step& step, std::span<const Rule* const> rules);

// True if the step can have another batch: whole micro-batches on every replica, in numbers that the schedule accepts.
//   micro_batch 1 x data 8, 1F1B                    every multiple of 8
//   the same, interleaved over 4 pipeline ranks     whole rounds: every multiple of 32
// The actions of a CSV, which are those of one batch, are not asked.
bool takes_batch(const Step& step, std::int64_t global_batch);

}  // namespace slipway::schedules
