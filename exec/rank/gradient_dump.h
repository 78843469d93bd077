// Parameter gradients as text, one file "gradients.<rank>" per rank, so that plain programs can compare
// layouts. Per parameter one header line and one line of numbers with 17 digits:
//
//   parameter <name> <rows> <columns> <dtype> shard <dim> <pieces> <begin> <end> ... across <begin> <end> slice <from> <to>
//   <to − from numbers>
//
// The rank's shard is the named rows (dim 0, or −1 where tensor ranks do not cut it) or columns (dim 1) of the whole
// tensor, and of these the range `across` of the other dimension. It is flattened row by row. The numbers are its elements [from, to) (all, unless the optimizer is sharded). Guarded by
// tests/exec/execute_layouts_test.cpp.
#pragma once

#include <iosfwd>

#include "exec/operators/parameters.h"

namespace slipway::exec {

// Writes the parameters that overlap [begin, end) of the flat gradients; `gradient` holds that slice.
void write_gradients(std::ostream& out, const BlockParameters& block, const at::Tensor& gradient, std::int64_t begin,
                     std::int64_t end);

}  // namespace slipway::exec
