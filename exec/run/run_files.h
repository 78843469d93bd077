// The names of the files in the folder of a run. The ranks (exec) write them; `slipway execute` reads them and adds
// others (scenarios/commands/execute/run_folder.h). Plain C++, no LibTorch. Guarded by tests/repository/repository_test.cpp.
#pragma once

#include <string>

#include "models/namespaces.h"

namespace slipway::exec {

std::string rank_file(const std::string& folder, int rank, const std::string& suffix);

// The bundle; ranks that joined a run each have their own.
inline std::string bundle_path(const std::string& folder) { return folder + "/run.slip"; }
inline std::string bundle_path(const std::string& folder, int rank) { return rank_file(folder, rank, "slip"); }
// The list of the weights that the run starts from (exec/run/weight_files.h), likewise.
inline std::string weights_path(const std::string& folder) { return folder + "/run.weights"; }
inline std::string weights_path(const std::string& folder, int rank) { return rank_file(folder, rank, "weights"); }
// The records of rank r, one per line (models/trace/trace.h).
inline std::string records_path(const std::string& folder, int rank) { return rank_file(folder, rank, "records"); }
// Lines "step samples loss learning-rate [batch [norm-squared variance]]" for all ranks together; rank 0 writes them.
inline std::string losses_path(const std::string& folder) { return rank_file(folder, 0, "losses"); }
// The reason why a run failed: the cause of one rank, and the verdict of all ("rank cause").
inline std::string error_path(const std::string& folder, int rank) { return rank_file(folder, rank, "error"); }
inline std::string verdict_path(const std::string& folder) { return folder + "/failure"; }
// Joined ranks only: the rank's process has ended, with this exit status.
inline std::string done_path(const std::string& folder, int rank) { return rank_file(folder, rank, "done"); }
// Made from the ranks' files at the end.
inline std::string trace_path(const std::string& folder) { return folder + "/trace.json"; }
inline std::string losses_csv_path(const std::string& folder) { return folder + "/losses.csv"; }
// The micro-benchmarks of one rank: `slipway-rank --measure PREFIX`.
inline std::string measured_path(const std::string& prefix, int rank) { return prefix + "." + std::to_string(rank); }

}  // namespace slipway::exec
