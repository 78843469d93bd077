// The names of the files in the folder of a run: what the ranks write there (exec) and `slipway execute` reads
// and adds (scenarios/execution/run_folder.h). Plain C++, no LibTorch. Guarded by tests/spelled_once_test.cpp.
#pragma once

#include <string>

namespace slipway {

inline std::string rank_file(const std::string& folder, int rank, const std::string& suffix) {
  return folder + "/rank-" + std::to_string(rank) + "." + suffix;
}

// The bundle; ranks that joined a run each have their own.
inline std::string bundle_path(const std::string& folder) { return folder + "/run.slip"; }
inline std::string bundle_path(const std::string& folder, int rank) { return rank_file(folder, rank, "slip"); }
// What rank r did, a line each (models/trace.h).
inline std::string records_path(const std::string& folder, int rank) {
  return rank_file(folder, rank, "records");
}
// "step samples loss learning-rate [batch [norm-squared variance]]" a line, of all ranks together: rank 0 writes it, step by step.
inline std::string losses_path(const std::string& folder) { return rank_file(folder, 0, "losses"); }
// Why a run failed: in the words of one rank, and the verdict of all ("rank cause").
inline std::string error_path(const std::string& folder, int rank) { return rank_file(folder, rank, "error"); }
inline std::string verdict_path(const std::string& folder) { return folder + "/failure"; }
// Joined ranks only: the rank's process has ended, with this exit status.
inline std::string done_path(const std::string& folder, int rank) { return rank_file(folder, rank, "done"); }
// Made from the ranks' files at the end.
inline std::string trace_path(const std::string& folder) { return folder + "/trace.json"; }
inline std::string losses_csv_path(const std::string& folder) { return folder + "/losses.csv"; }
// The micro-benchmarks of one rank: `slipway-rank --measure PREFIX`.
inline std::string measured_path(const std::string& prefix, int rank) {
  return prefix + "." + std::to_string(rank);
}

}  // namespace slipway
