// The folders of checkpoints, and which of them are complete. A checkpoint is a folder of shards and, written last, its
// manifest. Only then the folder gets its name. So a folder with that name is complete, whatever was killed when:
//
//   DIR/checkpoints/step-00000200.partial/   shards are being written
//   DIR/checkpoints/step-00000200/           manifest, shard-0.index, shard-0.data, shard-1.index, ...
//
//   manifest: slipway-checkpoint 4 │ step 200 │ samples 1600 │ batch 8 │ seed 7 │ sequence 256 │ data <bytes> <checksum> <path>
//             │ setting <value> <name> ... │ shard <rank> <checksum of its index> ... │ checksum <of the lines above>
// Version 1 has no batch, version 2 no settings of the model, and version 3 no sequence, no data, and no model shape
// among its settings.
// Plain C++, no LibTorch, because `slipway execute` uses it too. Guarded by tests/exec/checkpoint_file_test.cpp.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "exec/run/checksum.h"
#include "exec/run/data_files.h"
#include "models/model/parameters.h"
#include "schedules/graph/bundle.h"

namespace slipway::exec {

inline std::string checkpoints_path(const std::string& run_folder) { return run_folder + "/checkpoints"; }
inline std::string checkpoint_path(const std::string& run_folder, std::int64_t step) {
  const std::string digits = std::to_string(step);
  return checkpoints_path(run_folder) + "/step-" + std::string(8 - std::min<std::size_t>(8, digits.size()), '0') +
         digits;
}
inline std::string partial_path(const std::string& checkpoint) { return checkpoint + ".partial"; }
inline std::string manifest_path(const std::string& checkpoint) { return checkpoint + "/manifest"; }
inline std::string shard_path(const std::string& checkpoint, int rank, const char* part) {
  return checkpoint + "/shard-" + std::to_string(rank) + "." + part;
}

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

inline std::string to_text(const Manifest& manifest) {
  std::ostringstream out;
  out << "slipway-checkpoint 4\nstep " << manifest.step << "\nsamples " << manifest.samples << "\nbatch "
      << manifest.batch << "\nseed " << manifest.seed << "\nsequence " << manifest.sequence << "\ndata "
      << manifest.data.bytes << ' ' << manifest.data.checksum << ' ' << manifest.data.path << '\n';
  for (const auto& [name, value] : manifest.settings) out << "setting " << value << ' ' << name << '\n';
  for (const auto& [rank, checksum] : manifest.shards) out << "shard " << rank << ' ' << checksum << '\n';
  const std::string text = out.str();
  return text + "checksum " + std::to_string(checksum_of(text)) + '\n';
}

// Throws std::runtime_error with the file and its defect.
inline Manifest read_manifest(const std::string& checkpoint) {
  const std::string path = manifest_path(checkpoint);
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw std::runtime_error(checkpoint + " is no checkpoint (it has no manifest); name a folder step-... of " +
                             "DIR/checkpoints, or 'latest'");
  std::stringstream all;
  all << file.rdbuf();
  const std::string text = all.str();
  const std::size_t last = text.rfind("checksum ");
  if (last == std::string::npos ||
      text.substr(last) != "checksum " + std::to_string(checksum_of(std::string_view(text).substr(0, last))) + '\n')
    throw std::runtime_error(path + " is damaged (its checksum does not fit); resume from another checkpoint");
  std::istringstream in(text.substr(0, last));
  std::string word;
  int version = 0;
  Manifest manifest;
  in >> word >> version;
  if (word != "slipway-checkpoint" || version < 1 || version > 4)
    throw std::runtime_error(path + " is of another version of slipway; this one reads versions 1 to 4");
  in >> word >> manifest.step >> word >> manifest.samples;
  if (version > 1) in >> word >> manifest.batch;
  in >> word >> manifest.seed;
  if (version > 3) {
    in >> word >> manifest.sequence >> word >> manifest.data.bytes >> manifest.data.checksum >> std::ws;
    std::getline(in, manifest.data.path);
  }
  while (in >> word) {
    int rank = 0;
    if (word == "setting") {
      std::string value, name;
      std::getline(in >> value >> std::ws, name);
      manifest.settings[name] = value;
    } else if (in >> rank) {
      in >> manifest.shards[rank];
    }
  }
  return manifest;
}

// How the trained model differs from one of these settings ("heads: 4 there, 2 here"), if both have it; else empty.
inline std::string other_settings(const Manifest& manifest, const std::map<std::string, std::string>& settings) {
  std::string text;
  for (const auto& [name, value] : settings) {
    const auto there = manifest.settings.find(name);
    if (there == manifest.settings.end() || there->second == value) continue;
    text += (text.empty() ? "" : ", ") + name + ": " + there->second + " there, " + value + " here";
  }
  return text;
}

// Steps of the complete checkpoints of a run, ascending.
inline std::vector<std::int64_t> complete_checkpoints(const std::string& run_folder) {
  std::vector<std::int64_t> steps;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(checkpoints_path(run_folder), none)) {
    const std::string name = entry.path().filename().string();
    std::int64_t step = -1;
    if (name.starts_with("step-")) {
      const auto [end, error] = std::from_chars(name.data() + 5, name.data() + name.size(), step);
      if (error == std::errc() && end == name.data() + name.size()) steps.push_back(step);
    }
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

// Removes half-written checkpoints. No rank may be saving: call it before any does, or when all have ended.
inline void remove_partial_checkpoints(const std::string& run_folder) {
  std::error_code none;
  std::vector<std::filesystem::path> partial;
  for (const auto& entry : std::filesystem::directory_iterator(checkpoints_path(run_folder), none))
    if (entry.path().extension() == ".partial") partial.push_back(entry.path());
  for (const auto& path : partial) std::filesystem::remove_all(path, none);
}

// The checkpoint that --resume names: 'latest' of the run's own folder, another run's folder (its latest), or a
// checkpoint. Throws std::runtime_error if there is none.
inline std::string resolve_checkpoint(const std::string& what, const std::string& run_folder) {
  const std::string folder = what == "latest" ? run_folder : what;
  if (what != "latest" && std::filesystem::exists(manifest_path(what))) return what;
  const std::vector<std::int64_t> steps = complete_checkpoints(folder);
  if (steps.empty())
    throw std::runtime_error("--resume " + what + ": no complete checkpoint is " +
                             (what == "latest" ? "" : "there, nor ") + "in " + checkpoints_path(folder) +
                             "; leave --resume out to start from the beginning (run.checkpoint_steps makes them)");
  return checkpoint_path(folder, steps.back());
}

// The identity of a checkpoint's training: the same model on the same samples in the same order. It is in the manifest.
// `slipway execute` checks it before anything starts, and each rank when it reads the checkpoint.
//
//   may not change    the model, seed, sequence, data (which samples come when)
//   may change        layout, schedule, batch, dtype, optimizer, steps
//
// Plain C++, no LibTorch. Guarded by tests/scenarios/resume_command_test.cpp.

// The identity that every checkpoint of a training stores. Throws std::runtime_error where its data cannot be read.
inline Manifest training_of(const Model& model, const Run& run) {
  Manifest manifest;
  manifest.seed = run.seed;
  manifest.sequence = model.sequence;
  manifest.data = data_identity(run.data);
  manifest.settings = settings_without_shape(model);
  const auto say = [&](const char* name, std::int64_t value) { manifest.settings[name] = std::to_string(value); };
  say("layers", layer_count(model));
  say("parameters", parameter_count(model));
  for (const BlockRun& blocks : model.runs) {
    if (blocks.block.kind == BlockKind::embedding) say("vocab", blocks.block.vocab);
    say("hidden", blocks.block.hidden);
  }
  return manifest;
}

// Why the training `here` cannot continue from `checkpoint`, whose manifest is `there`, and the remedy. Only fields
// that both have are compared. Empty: it can.
inline std::string other_training(const std::string& checkpoint, const Manifest& there, const Manifest& here) {
  if (const std::string other = other_settings(there, here.settings); !other.empty())
    return checkpoint + " is of another model (" + other + "); resume with the model that was trained";
  if (there.seed != here.seed)
    return checkpoint + " was made with run.seed " + std::to_string(there.seed) +
           ", which orders the data; set run.seed to it (here " + std::to_string(here.seed) +
           "), or start a new run without --resume";
  if (there.sequence != 0 && there.sequence != here.sequence)
    return checkpoint + " was made with model.sequence " + std::to_string(there.sequence) +
           ", which cuts the data into samples; set model.sequence to it (here " + std::to_string(here.sequence) +
           "), or start a new run without --resume";
  const auto size = [](const DataIdentity& data) { return data.path + " (" + std::to_string(data.bytes) + " bytes)"; };
  if (there.data.bytes != 0 && !there.data.is_same(here.data))
    return checkpoint + " was trained on " + size(there.data) + ", and run.data, " + size(here.data) +
           ", holds something else: its samples are others; set run.data back, or start a new run without "
           "--resume";
  return "";
}

}  // namespace slipway::exec
