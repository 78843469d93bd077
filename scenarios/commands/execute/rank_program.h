// Ranks on this machine: their program, and one process description per rank with torchrun's variables (RANK,
// WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT) and a token of the run (SLIPWAY_TOKEN).
// Guarded by tests/exec/rank_program_test.cpp.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/commands/execute/launch.h"

namespace slipway::scenarios {

// SLIPWAY_RANK when set, otherwise slipway-rank beside this program. Throws std::runtime_error with the remedy when it
// is missing or not executable, or where it is a packed one (make package) and there is no PyTorch 2.11 for it.
std::string rank_program();
// Decides by the name: the build calls the program for GPUs slipway-rank-cuda.
bool computes_on_gpus(const std::string& program);

// Processes `program arguments...` of `ranks_per_process` ranks each, with errors in `folder`, on own cores when there
// are enough (launch.h). The port is free now. If another process takes it before rank 0 does, rank 0 reports that.
std::vector<RankProcess> local_ranks(const std::string& program, const std::vector<std::string>& arguments, int ranks,
                                     int ranks_per_process, const std::string& folder);
// Further arguments for several ranks per process; empty for one.
std::vector<std::string> sharing_arguments(int ranks_per_process);

// Another launcher (torchrun, srun, mpirun) started this process as one of `world`.
struct JoinedRank {
  int rank = 0, world = 1;
  std::string launcher;  // "torchrun", "srun", "mpirun"
};
// Reads the variables of exec/run/launchers.h. Throws std::runtime_error with the variable when the number of ranks is
// missing, or either value is no number.
std::optional<JoinedRank> joined_rank(const std::function<const char*(const char*)>& variable);

// The first rank that failed, with its cause. The ranks' common verdict (FOLDER/failure, "rank cause") comes first,
// because ranks may end in another order than they failed. Without one, it is the launcher's first failure, or
// `reported` (from cause_in) where that is only an exit status: a full disk takes no verdict.
std::string first_cause(const LaunchResult& result, const std::string& folder, const std::string& reported = "");

// "rank 1 failed: CAUSE" from a rank's error line, also from "rank 0 stops: rank 1 failed: CAUSE"; otherwise empty.
std::string cause_in(std::string_view line);

}  // namespace slipway::scenarios
