// A diverged training: one of its numbers is not finite, and all later ones are invalid. The check is where the loss of
// a step is summed (exec/rank/losses.h), and before each rank writes its shard of a checkpoint
// (exec/rank/parameter_state.h). So no checkpoint holds such a number. Either ends the run as a failure.
// Plain C++, no LibTorch. Guarded by tests/exec/execute_diverged_test.cpp.
#pragma once

#include <stdexcept>
#include <string>

#include "models/namespaces.h"

namespace slipway::exec {

// `what`: for example "the loss is nan".
inline std::runtime_error diverged(const std::string& what) {
  return std::runtime_error(
      "the training has diverged: " + what +
      "; lower run.optimizer.lr, lengthen its warm-up "
      "(run.optimizer.lr_warmup_samples) or set run.clip_norm, and go on from the last checkpoint, if any, "
      "with --resume latest");
}

}  // namespace slipway::exec
