// One time line for all ranks. Every rank stamps with its own CLOCK_MONOTONIC; ranks with rank 0's boot id share its
// clock exactly. Others exchange time stamps with rank 0 through the store before and after the run. They keep the
// exchange with the shortest round trip of each, and assume that the clocks drift linearly:
//
//   offset = rank 0's stamp − middle of the round trip;   rank-0 time(t) = t + offset(t), offset linear in t
//
// Guarded by tests/exec/clock_test.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "exec/process/store.h"

namespace slipway::exec {

using Nanoseconds = std::int64_t;
Nanoseconds monotonic_ns();

// One exchange: sent and received on this rank's clock, answered on rank 0's.
struct ClockExchange {
  Nanoseconds sent = 0, answered = 0, received = 0;
};

struct ClockSample {
  Nanoseconds at = 0;      // this rank's clock
  Nanoseconds offset = 0;  // rank 0's clock − this rank's, at that moment
};

// The exchange with the shortest round trip. Requires at least one.
ClockSample best_sample(const std::vector<ClockExchange>& exchanges);
// This rank's stamp on rank 0's clock. One sample: constant offset; none: equal clocks.
Nanoseconds on_rank0(Nanoseconds stamp, const std::vector<ClockSample>& samples);

// Collective over all ranks, each with its own Store. Rank 0 answers the ranks in `foreign` (those without its boot id)
// one after the other. `round` makes keys unique ("before", "after"). On a foreign rank returns its sample, elsewhere
// nothing. `now` is the rank's clock.
std::vector<ClockSample> exchange_clocks(Store& store, const std::string& round, int rank,
                                         const std::vector<int>& foreign,
                                         const std::function<Nanoseconds()>& now = monotonic_ns);

}  // namespace slipway::exec
