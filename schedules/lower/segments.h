// Cuts one stage's operator list into segments, the unit of compute in the graph.
//
//   norm1 | ag1 | qkv attention out | rs1 | add norm2 | ag2 | up act down | rs2 | add norm1 | ...
//   └seg┘ comm  └────── seg ──────┘ comm  └── seg ──┘ ...
//
// Cuts are at every communicate operator and around a round of ring attention. Block boundaries are cut too when
// something happens per block: a gradient reduction that overlaps, gathered weights, recomputation.
// Wire rules: schedules/graph/task_graph.h. Guarded by tests/schedules/lowering_test.cpp.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "models/model/model.h"
#include "models/model/operators.h"

namespace slipway::schedules {

struct Segment {
  int first_op = 0, last_op = 0;        // compute operators [first, last) of the stage
  int communicates = 0;                 // communicate operators that follow, one after the other
  int gather = -1;                      // the communicate operator before, if it gathers this segment's input; or -1
  int first_block = 0, last_block = 0;  // blocks touched, [first, last)
  Wires in = 0, out = 0;
  std::string name;         // "" (whole action), "L5", "L5.mlp", "emb", "head.loss"
  bool recomputed = false;  // all its operators belong to a transformer block that is recomputed
};

struct StageSegments {
  std::vector<Segment> segments;  // in forward order
};

// `by_block` cuts at block boundaries as well. `blocks` = blocks_of(model).
StageSegments segments_of_stage(const std::vector<Operator>& operators, const std::vector<Block>& blocks, bool by_block,
                                bool recompute_blocks, bool is_first_stage, bool is_last_stage);

// True if the input of operator `at`, of `block`, is gathered again for its weight gradient (passes.cpp).
bool input_comes_again(std::span<const Operator> operators, int at, const Block& block, Recompute recompute);

// "L5", "emb", "head".
std::string block_name(const std::vector<Block>& blocks, int block);

// Bytes of `wire` per rank where segment [.., last_op) ends, before and after the communicate operator that follows it
// (equal when none does). A message in a narrow format has buffers in that format; which ones are narrow differs between
// the values of the forward pass and their gradients.
struct WireBytes {
  double before = 0, after = 0;
};
enum class WireValue : std::uint8_t { value, gradient };
WireBytes wire_bytes(std::span<const Operator> operators, int last_op, Wires wire, WireValue of,
                     const Sharding& sharding, double boundary_bytes);

}  // namespace slipway::schedules
