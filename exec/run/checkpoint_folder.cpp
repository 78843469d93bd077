#include "exec/run/checkpoint_folder.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include "exec/run/checksum.h"

namespace slipway::exec {

std::string checkpoint_path(const std::string& run_folder, std::int64_t step) {
  const std::string digits = std::to_string(step);
  return checkpoints_path(run_folder) + "/step-" + std::string(8 - std::min<std::size_t>(8, digits.size()), '0') +
         digits;
}

std::string shard_path(const std::string& checkpoint, int rank, const char* part) {
  return checkpoint + "/shard-" + std::to_string(rank) + "." + part;
}

std::string to_text(const Manifest& manifest) {
  std::ostringstream out;
  out << "slipway-checkpoint 5\nstep " << manifest.step << "\nsamples " << manifest.samples << "\nbatch "
      << manifest.batch << "\nseed " << manifest.seed << "\nsequence " << manifest.sequence << "\ndata "
      << manifest.data.bytes << ' ' << manifest.data.checksum << ' ' << manifest.data.path << '\n';
  for (const auto& [name, value] : manifest.settings) out << "setting " << value << ' ' << name << '\n';
  for (const auto& [rank, checksum] : manifest.shards) out << "shard " << rank << ' ' << checksum << '\n';
  const std::string text = out.str();
  return text + "checksum " + std::to_string(checksum_of(text)) + '\n';
}

Manifest read_manifest(const std::string& checkpoint) {
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
  if (word != "slipway-checkpoint" || version < 1 || version > 5)
    throw std::runtime_error(path + " is of another version of slipway; this one reads versions 1 to 5");
  in >> word >> manifest.step >> word >> manifest.samples;
  if (version > 1) in >> word >> manifest.batch;
  in >> word >> manifest.seed;
  if (version > 3) {
    in >> word >> manifest.sequence >> word >> manifest.data.bytes >> manifest.data.checksum >> std::ws;
    std::getline(in, manifest.data.path);
    if (version < 5) manifest.data.checksum = 0;
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

std::string other_settings(const Manifest& manifest, const std::map<std::string, std::string>& settings) {
  std::string text;
  for (const auto& [name, value] : settings) {
    const auto there = manifest.settings.find(name);
    if (there == manifest.settings.end() || there->second == value) continue;
    text += (text.empty() ? "" : ", ") + name + ": " + there->second + " there, " + value + " here";
  }
  return text;
}

std::vector<std::int64_t> complete_checkpoints(const std::string& run_folder) {
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

void remove_partial_checkpoints(const std::string& run_folder) {
  std::error_code none;
  std::vector<std::filesystem::path> partial;
  for (const auto& entry : std::filesystem::directory_iterator(checkpoints_path(run_folder), none))
    if (entry.path().extension() == ".partial") partial.push_back(entry.path());
  for (const auto& path : partial) std::filesystem::remove_all(path, none);
}

std::string resolve_checkpoint(const std::string& what, const std::string& run_folder) {
  const std::string folder = resumes_here(what) ? run_folder : what;
  if (!resumes_here(what) && std::filesystem::exists(manifest_path(what))) return what;
  const std::vector<std::int64_t> steps = complete_checkpoints(folder);
  if (steps.empty())
    throw std::runtime_error("--resume " + what + ": no complete checkpoint is " +
                             (resumes_here(what) ? "" : "there, nor ") + "in " + checkpoints_path(folder) +
                             "; leave --resume out to start from the beginning (run.checkpoint_steps makes them)");
  return checkpoint_path(folder, steps.back());
}

}  // namespace slipway::exec
