// The launchers' environment variables, in one table for the rank program (exec/process/environment.cpp) and
// `slipway execute` (scenarios/commands/execute/rank_program.cpp).
//
//   torchrun   RANK, WORLD_SIZE, LOCAL_RANK
//   srun       SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID, inside a job step (SLURM_STEP_ID): a batch script has the
//              others too, but is no rank
//   mpirun     OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK (Open MPI)
//
// The first launcher whose variables are set wins; an empty variable counts as unset. Plain C++, no LibTorch.
// Guarded by tests/exec/arguments_test.cpp, tests/exec/rank_program_test.cpp and tests/repository/repository_test.cpp.
#pragma once

#include <functional>

#include "models/namespaces.h"

namespace slipway::exec {

struct Launcher {
  const char *name, *rank, *world, *local_rank;
  const char* inside = nullptr;  // must be set too
};

inline constexpr Launcher launchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK"},
    {"srun", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_STEP_ID"},
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
};

// Null without a launcher. `value` returns a variable, null or empty when it is not set.
const Launcher* launcher_in(const std::function<const char*(const char*)>& value);

}  // namespace slipway::exec
