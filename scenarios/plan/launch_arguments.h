// A training's length and learning rate schedule (models/training/learning_rate.h) as options of another trainer, with
// the settings that it refuses, rounds or cuts. Schedulers as in Megatron-LM
// (megatron/core/optimizer_param_scheduler.py, whose warm-up must end before its decay) and torchtitan
// (torchtitan/components/lr_scheduler.py, in steps). Guarded by tests/scenarios/launch_arguments_test.cpp.
#pragma once

#include <cstdint>

#include "scenarios/plan/answer.h"

namespace slipway::scenarios {

// Adds --train-samples or --train-iters and the options of the rate, but not the rate itself.
void megatron_learning_rate(const Scenario& scenario, LaunchArguments& launch);
// Adds the rate and its schedule.
void torchtitan_learning_rate(const Scenario& scenario, LaunchArguments& launch);
// The steps for run.tokens, rounded up; without it run.steps.
std::int64_t torchtitan_steps(const Scenario& scenario);

}  // namespace slipway::scenarios
