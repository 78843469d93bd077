// The micro-batch of a run whose authors tuned it and whose table does not tell it: of 1, 2, 4, 8 and 16 sequences the
// one with the shortest step among those that divide the batch and fit the GPU (Narayanan et al. 2021, arXiv
// 2104.04473, section 3.4: a model of these two terms finds it).
//
// Priced with the book values (priors) of the stack profile: no measured time, neither the row's nor those that
// constants were fitted to, has a say. Guarded by tests/scenarios/tables_test.cpp.
#pragma once

#include "scenarios/tables/published_row.h"

namespace slipway::scenarios {

// The same run with another micro-batch.
using WithMicroBatch = void (*)(PublishedRow& row, std::int64_t micro_batch, std::int64_t global_batch);

// Throws CellError where none of them divides the batch; where none fits, the smallest that divides it stands.
void set_tuned_micro_batch(PublishedRow& row, std::int64_t global_batch, WithMicroBatch set);

}  // namespace slipway::scenarios
