// The identity of a checkpoint's training: the same model on the same samples in the same order. It is in the manifest.
// `slipway execute` checks it before anything starts, and each rank when it reads the checkpoint.
//
//   may not change    the model, seed, sequence, data (which samples come when)
//   may change        layout, schedule, batch, dtype, optimizer, steps
//
// Plain C++, no LibTorch. Guarded by tests/scenarios/resume_command_test.cpp.
#pragma once

#include <string>

#include "exec/run/checkpoint_folder.h"
#include "models/model/model.h"
#include "schedules/bundle/bundle.h"

namespace slipway::exec {

// The identity that every checkpoint of a training stores. Throws std::runtime_error where its data cannot be read.
Manifest training_of(const Model& model, const Run& run);

// The reason why the training `here` cannot continue from `checkpoint`, whose manifest is `there`, and the remedy. Only
// fields that both have are compared. Empty: it can.
std::string other_training(const std::string& checkpoint, const Manifest& there, const Manifest& here);

}  // namespace slipway::exec
