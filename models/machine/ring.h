// α-β time of a transfer or ring collective on links without contention.
//
//   ring of n = 4, all-reduce of S bytes: n−1 reduce-scatter rounds, then n−1 all-gather rounds,
//   in each of which every member sends S/n to the next:   0 → 1 → 2 → 3 → 0
//     2(n−1)·α + 2(n−1)/n·S/B   (+ (n−1)/n·S/R to add what arrives, where adding is not free)
//
// Bandwidth-optimal rings after Patarasuk and Yuan 2009, in the forms of nccl-tests (PERFORMANCE.md).
// Guarded by tests/models/collectives_test.cpp.
#pragma once

#include "models/model/operators.h"

namespace slipway::models {

// Seconds over n members. `bytes` S: the whole (gathered, reduced, broadcast or sent) tensor.
//   all_reduce                 2(n−1)·α + 2(n−1)/n·S/B + (n−1)/n·S/R
//   reduce_scatter              (n−1)·α +  (n−1)/n·S/B + (n−1)/n·S/R
//   all_gather                  (n−1)·α +  (n−1)/n·S/B
//   broadcast (pipelined ring)  (n−1)·α + S/B
//   all_to_all (pairwise)       (n−1)·α +  (n−1)/n·S/B     S: what one member sends, its own part included
//   send                              α + S/B
//   shift                             α + S/B                              S: what each member sends to the next
//   none, or n = 1              0
// α = latency in seconds, B = bandwidth in bytes/s of one port and direction, R = reduce_bandwidth in bytes/s (0:
// adding is free). Throws std::invalid_argument for n < 1, bytes < 0, or no bandwidth.
double ring_seconds(Collective collective, int members, double bytes, double latency, double bandwidth,
                    double reduce_bandwidth);

// Bytes over each link of the ring and number of rounds, for engines that model the flow itself.
struct RingTraffic {
  double bytes_per_link = 0;
  int rounds = 0;
  double reduced_bytes = 0;  // added by each member
};
RingTraffic ring_traffic(Collective collective, int members, double bytes);

}  // namespace slipway::models
