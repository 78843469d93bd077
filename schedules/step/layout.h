// The parallel degrees, the numbering of ranks and the split of blocks on stages.
//
//   rank = ((pipeline·data + d)·context + c)·tensor + t        (tensor fastest, pipeline slowest)
//
// Experts are folded onto the same ranks (Megatron-Core's parallel folding, Liu et al. 2025): member
// k = (d·context + c)·tensor + t of a pipeline rank is (x·expert + e)·expert_tensor + u, with x among the
// context·data·tensor / (expert·expert_tensor) ranks that hold the same part of the same experts.
//
// A *stage* here is a virtual stage (model chunk): with v chunks per rank, one copy of the model has pipeline·v stages.
// The schedule chooses the rank of each stage (schedules/step/placement.h).
// Guarded by tests/schedules/layout_test.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/model/model.h"
#include "models/model/sharding.h"

namespace slipway::schedules {

enum class SplitKind : std::uint8_t { even, balanced, list };
// A list is written out, so it has no name.
inline constexpr std::array split_names{Named{SplitKind::even, "even"}, Named{SplitKind::balanced, "balanced"}};

struct Layout {
  int tensor = 1, pipeline = 1, chunks = 1, context = 1, data = 1, expert = 1;
  int expert_tensor = 0;  // ranks that cut each expert; 0: tensor
  Dispatcher dispatcher = Dispatcher::alltoall;
  ContextExchange context_exchange = ContextExchange::all_gather;
  bool sequence_parallel = false;
  int zero = 0;  // 0..3
  // Groups of data ranks, each with all shards of ZeRO (hybrid sharding: HSDP, Megatron-Core's instances of the
  // distributed optimizer). A group has data·context / replicate ranks that follow one another.
  int replicate = 1;
  SplitKind split = SplitKind::even;
  std::vector<int> split_list = {};  // transformer layers per stage when split == list
  std::vector<int> placement = {};   // node that holds the first ranks, the next ranks, ...; empty: 0, 1, ...
};

// The members of a pipeline rank that get tasks and represent all others (schedules/lower/representatives.h): those of
// tensor coordinate < tensor and replica data·C + context < replicas. 0: all members.
struct Representatives {
  int tensor = 0, replicas = 0;
  bool operator==(const Representatives&) const = default;
};

struct Coordinates {
  int tensor = 0, context = 0, data = 0, pipeline = 0;
  bool operator==(const Coordinates&) const = default;
};

int rank_count(const Layout& layout);
int stage_count(const Layout& layout);
int rank_of(const Layout& layout, const Coordinates& at);
Coordinates coordinates_of(const Layout& layout, int rank);
Sharding sharding_of(const Layout& layout);
// Ranks of a pipeline rank; those among them that hold the same part of the same experts.
int member_count(const Layout& layout);
int expert_data_of(const Layout& layout);
// Ranks among which ZeRO divides what data and context ranks hold alike.
int shards_of(const Layout& layout);

// The representative rank, which has the tasks of `rank`: `rank` itself where all members have tasks.
std::int32_t representative_of(const Layout& layout, const Representatives& representatives, std::int32_t rank);
// Number of ranks that have tasks, and the place of rank's representative among them, in order of rank.
int lowered_count(const Layout& layout, const Representatives& representatives);
int lowered_index(const Layout& layout, const Representatives& representatives, std::int32_t rank);

// Blocks [first, last) of blocks_of(model).
struct BlockRange {
  int first = 0, last = 0;
  bool operator==(const BlockRange&) const = default;
};
// Block ranges of so many layers per stage: the embedding is block 0, layer i is block i + 1, the head comes last.
std::vector<BlockRange> block_ranges(const std::vector<int>& layers_per_stage);
// Returns one range per stage. The embedding goes with the first stage, the head with the last.
// even: early stages get one more layer; with one or two layers fewer than stages, the last stage has only the head, and
// the first one only the embedding (Llama 3 405B, Llama Team 2024: 126 layers on 16 × 8 stages). balanced: the largest
// stage by FLOPs (head counted) is as small as possible. list: as given; a stage of no layer and no head or embedding
// only hands on what it gets. Throws std::invalid_argument with the reason when impossible.
std::vector<BlockRange> split_blocks(const Model& model, const Layout& layout);

}  // namespace slipway::schedules
