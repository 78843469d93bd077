// Ranks on this machine: which program they are, and one process description per rank as torchrun would set
// it up (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT).
// Guarded by tests/exec/rank_program_test.cpp.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/execute/launch.h"

namespace slipway::scenarios {

// SLIPWAY_RANK when set, else slipway-rank beside this program. Throws std::runtime_error with the remedy
// when it is not there or cannot be executed.
std::string rank_program();
// By its name: the build calls the program for GPUs slipway-rank-cuda.
bool computes_on_gpus(const std::string& program);

// Processes `program arguments...` of `ranks_per_process` ranks each, which leave errors in `folder`, each on cores of its own when
// there are enough (scenarios/execute/launch.h). The port is free now; another process could take it before rank 0 does, which then says so.
std::vector<RankProcess> local_ranks(const std::string& program, const std::vector<std::string>& arguments, int ranks,
                                     int ranks_per_process, const std::string& folder);
// What the rank program must be told besides; nothing for one rank per process.
std::vector<std::string> sharing_arguments(int ranks_per_process);

// Somebody else (torchrun, srun, mpirun) started this process as one of `world`.
struct JoinedRank {
  int rank = 0, world = 1;
  std::string launcher;  // "torchrun", "srun", "mpirun"
};
// By the table of exec/run/launchers.h. Throws std::runtime_error naming the variable when the number of ranks is
// missing or one of both is no number.
std::optional<JoinedRank> joined_rank(const std::function<const char*(const char*)>& variable);

// Who failed first: the verdict that the ranks agreed on (FOLDER/failure, "rank cause") when they left one,
// since ranks may end in another order than they failed; else the launcher's first failure, or `told` (by
// told_cause) where that is no more than an exit status: a full disk takes no verdict.
std::string first_cause(const LaunchResult& result, const std::string& folder, const std::string& told = "");

// "rank 1 failed: CAUSE" of a rank's error line that says so, or "rank 0 stops: rank 1 failed: CAUSE"; else empty.
std::string told_cause(std::string_view line);

}  // namespace slipway::scenarios
