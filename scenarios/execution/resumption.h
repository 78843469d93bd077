// From where `slipway execute` goes on: what --resume names, checked against the scenario before anything starts.
// Guarded by tests/command_resume_test.cpp.
#pragma once

#include <optional>
#include <string>

#include "schedules/bundle.h"

namespace slipway {

struct Resumption {
  std::string checkpoint;    // its folder; empty: from the beginning
  int done = 0;              // steps
  std::int64_t samples = 0;  // sequences of those steps
  bool is_here = false;      // a checkpoint of the run's own folder: the run goes on there
};

// `what`: of --resume, `folder`: of the run. Throws UsageError: no such checkpoint, a damaged one, another seed,
// nothing left to do; and, but for `overwrite`, where the folder holds checkpoints of another course, which the run would
// replace.
Resumption resumption_of(const std::optional<std::string>& what, const std::string& folder, const Run& run, bool overwrite);

}  // namespace slipway
