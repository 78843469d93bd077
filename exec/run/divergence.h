// A training that has diverged: some number of it is not finite, and everything after that is none either.
// It is seen first where the loss of a step is put together (exec/rank/losses.h), and by each rank before its
// shard of a checkpoint is written (exec/rank/parameter_state.h), so that no checkpoint holds such a number;
// either ends the run as a failure. Plain C++, no LibTorch. Guarded by tests/exec/execute_diverged_test.cpp.
#pragma once

#include <stdexcept>
#include <string>

#include "models/namespaces.h"

namespace slipway::exec {

// `what`: "the loss is nan".
inline std::runtime_error diverged(const std::string& what) {
  return std::runtime_error(
      "the training has diverged: " + what +
      "; lower run.optimizer.lr, lengthen its warm-up "
      "(run.optimizer.lr_warmup_samples) or set run.clip_norm, and go on from the last checkpoint, if any, "
      "with --resume latest");
}

}  // namespace slipway::exec
