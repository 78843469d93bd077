// The micro-batch of a run that its authors tuned but did not publish. Among 1, 2, 4, 8 and 16 sequences it is the one
// with the shortest step that divides the batch and fits the GPU (Narayanan et al. 2021, arXiv 2104.04473, section 3.4:
// a model of these two terms finds it).
//
// Priced with the book values (priors) of the stack profile, so that no measured time has an influence: neither the
// row's own nor those behind the fitted constants. Guarded by tests/scenarios/tables_test.cpp.
#pragma once

#include "scenarios/tables/published_row.h"

namespace slipway::scenarios {

// Sets another micro-batch in the run.
using WithMicroBatch = void (*)(PublishedRow& row, std::int64_t micro_batch, std::int64_t global_batch);

// Throws CellError where no candidate divides the batch. Where none fits, takes the smallest that divides it.
void set_tuned_micro_batch(PublishedRow& row, std::int64_t global_batch, WithMicroBatch set);

}  // namespace slipway::scenarios
