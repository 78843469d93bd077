// The folders of checkpoints, and which of them are complete. A checkpoint is a folder of shards and, written last, its
// manifest. Only then the folder gets its name. So a folder with that name is complete, whatever was killed when:
//
//   DIR/checkpoints/step-00000200.partial/   shards are being written
//   DIR/checkpoints/step-00000200/           manifest, shard-0.index, shard-0.data, shard-1.index, ...
//
//   manifest: slipway-checkpoint 5 │ step 200 │ samples 1600 │ batch 8 │ seed 7 │ sequence 256 │ data <bytes> <checksum> <path>
//             │ setting <value> <name> ... │ shard <rank> <checksum of its index> ... │ checksum <of the lines above>
// Version 1 has no batch, version 2 no settings of the model, and version 3 no sequence, no data, and no model shape
// among its settings. The checksum of version 4 is one of samples of the data and counts no more.
// Plain C++, no LibTorch, because `slipway execute` uses it too. Guarded by tests/exec/checkpoint_file_test.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "exec/run/data_files.h"
#include "models/model/parameters.h"
#include "schedules/bundle/bundle.h"

namespace slipway::exec {

inline std::string checkpoints_path(const std::string& run_folder) { return run_folder + "/checkpoints"; }
std::string checkpoint_path(const std::string& run_folder, std::int64_t step);
inline std::string partial_path(const std::string& checkpoint) { return checkpoint + ".partial"; }
inline std::string manifest_path(const std::string& checkpoint) { return checkpoint + "/manifest"; }
std::string shard_path(const std::string& checkpoint, int rank, const char* part);

struct Manifest {
  std::int64_t step = 0;     // number of steps done
  std::int64_t samples = 0;  // sequences trained on
  std::int64_t batch = 0;    // sequences of the next step; 0: unknown
  std::uint64_t seed = 0;
  std::int64_t sequence = 0;                    // tokens; 0: unknown
  DataIdentity data;                            // without bytes: unknown
  std::map<std::string, std::string> settings;  // of the model (training_of)
  std::map<int, std::uint64_t> shards;          // rank that wrote it → checksum of its index
};

std::string to_text(const Manifest& manifest);

// Throws std::runtime_error with the file and its defect.
Manifest read_manifest(const std::string& checkpoint);

// The difference between the trained model and one of these settings ("heads: 4 there, 2 here"), if both have it; else
// empty.
std::string other_settings(const Manifest& manifest, const std::map<std::string, std::string>& settings);

// Steps of the complete checkpoints of a run, ascending.
std::vector<std::int64_t> complete_checkpoints(const std::string& run_folder);

// Removes half-written checkpoints. No rank may be saving: call it before any does, or when all have ended.
void remove_partial_checkpoints(const std::string& run_folder);

// The words of --resume for the newest checkpoint of the run's own folder. The second starts from the beginning where
// there is none, and takes the newest one that is whole (exec/run/checkpoint_file.h).
inline constexpr const char* resume_latest = "latest";
inline constexpr const char* resume_if_any = "if-any";
inline bool resumes_here(const std::string& what) { return what == resume_latest || what == resume_if_any; }

// The checkpoint that --resume names: the newest of the run's own folder, another run's folder (its newest), or a
// checkpoint. Throws std::runtime_error if there is none.
std::string resolve_checkpoint(const std::string& what, const std::string& run_folder);

}  // namespace slipway::exec
