// This process's rank, and the place where the ranks meet: a pure function of the environment.
//
//   the variables of torchrun and `slipway execute`, srun, or mpirun   exec/run/launchers.h
//   none of them                                                       one rank
//
// MASTER_ADDR and MASTER_PORT come from the user when set. Otherwise srun's ranks meet on the first host of
// SLURM_NODELIST. With TORCHELASTIC_USE_AGENT_STORE=True torchrun's agent hosts the store. Then every rank is a client,
// under a prefix with the restart count. Ranks whose SLIPWAY_TOKEN is not that of rank 0 are refused (store.h).
// Guarded by tests/exec/arguments_test.cpp.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "models/namespaces.h"

namespace slipway::exec {

using EnvironmentMap = std::map<std::string, std::string>;

struct RankEnvironment {
  int rank = 0, world = 1, local_rank = 0;
  int hosted = 1;                 // ranks of this process: rank, rank + 1, ...
  std::string launcher = "none";  // "torchrun", "srun", "mpirun", "none"
  std::string store_host = "127.0.0.1";
  int store_port = 0;        // 0: any free port (one rank only)
  bool agent_store = false;  // the launcher hosts the store
  std::string store_prefix;  // separates runs and restarts that share a store
  std::string token;         // of the run; empty: it has none

  int process_of(int a_rank) const { return a_rank / hosted; }
  bool hosts(int a_rank) const { return a_rank >= 0 && process_of(a_rank) == process_of(rank); }
  int processes() const { return world / hosted; }
  bool hosts_store() const { return rank == 0 && !agent_store; }
};

// A name or address of this machine that no other machine reaches.
bool is_loopback(std::string_view host);

EnvironmentMap process_environment();

// Throws std::runtime_error with the variable, its value and what to set.
RankEnvironment rank_environment(const EnvironmentMap& environment);

// Puts several ranks in each process: the launcher's process 1 of 2 with four of them hosts ranks 4 to 7 of 8. The
// local rank stays the process's: it names the device that they share.
RankEnvironment hosting(RankEnvironment process, int ranks);

}  // namespace slipway::exec
