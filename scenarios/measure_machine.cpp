#include "scenarios/measure_machine.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <stdexcept>
#include <thread>

#include "scenarios/launch.h"

namespace slipway {
namespace {

// A folder of our own that is gone when we are.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "slipway-measure-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr)
      throw std::runtime_error("cannot make a folder like " + pattern);
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;  // a left-over folder in /tmp is no reason to fail
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::vector<RankProcess> rank_processes(const MeasureOptions& options,
                                        const std::filesystem::path& folder) {
  const std::string port = std::to_string(free_port());
  std::vector<RankProcess> ranks;
  for (int rank = 0; rank < options.ranks; ++rank) {
    const std::string number = std::to_string(rank);
    const std::string errors = (folder / ("error." + number)).string();
    ranks.push_back({rank,
                     {options.rank_program, "--measure", (folder / "measured").string(), "--dtype",
                      name_of(options.dtype)},
                     {{"RANK", number},
                      {"WORLD_SIZE", std::to_string(options.ranks)},
                      {"LOCAL_RANK", number},
                      {"MASTER_ADDR", "127.0.0.1"},
                      {"MASTER_PORT", port}},
                     errors});
  }
  return ranks;
}

}  // namespace

std::vector<Measurement> measure_machine(const MeasureOptions& options, std::ostream& err) {
  const TemporaryFolder folder;
  LaunchOptions launch_options;
  std::string last_error;
  launch_options.line = [&](int rank, std::string_view line, bool is_error) {
    if (is_error) last_error = line;
    err << "rank " << rank << ": " << line << '\n';
  };
  const LaunchResult result = launch(rank_processes(options, folder.path()), launch_options);
  if (result.interrupted) throw std::runtime_error("interrupted while measuring");
  if (result.first_failure) {
    throw std::runtime_error("the micro-benchmarks failed: " + describe(*result.first_failure) +
                             (last_error.empty() ? "" : " (" + last_error + ")"));
  }
  std::vector<Measurement> measurements;
  for (int rank = 0; rank < options.ranks; ++rank) {
    const std::string path = (folder.path() / ("measured." + std::to_string(rank))).string();
    std::ifstream file(path);
    if (!file) throw std::runtime_error("rank " + std::to_string(rank) + " ended well but left no " + path);
    const std::vector<Measurement> more = read_measurements(file, path);
    measurements.insert(measurements.end(), more.begin(), more.end());
  }
  return merged(std::move(measurements));
}

std::string host_description() {
  std::ifstream file("/proc/cpuinfo");
  std::string model = "unknown processor";
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(": ");
    if (line.rfind("model name", 0) != 0 || colon == std::string::npos) continue;
    model = line.substr(colon + 2);
    break;
  }
  return model + ", " + std::to_string(std::thread::hardware_concurrency()) + " cores";
}

}  // namespace slipway
