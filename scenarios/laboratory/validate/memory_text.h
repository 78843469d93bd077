// models/memory/pooled.yaml, fitted again: what `slipway validate --memory-constants` writes.
// Guarded by tests/scenarios/memory_refit_test.cpp: the built-in file is the fit to the built-in tables.
#pragma once

#include <string>
#include <vector>

#include "scenarios/laboratory/tables/table.h"

namespace slipway::scenarios {

// Fitted to all published runs and those of `tables`.
std::string memory_constants_text(const std::vector<PublishedTable>& tables);

}  // namespace slipway::scenarios
