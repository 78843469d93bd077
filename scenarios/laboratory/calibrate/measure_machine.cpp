#include "scenarios/laboratory/calibrate/measure_machine.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <stdexcept>
#include <thread>

#include "exec/run/run_files.h"
#include "scenarios/commands/execute/rank_program.h"

namespace slipway::scenarios {
namespace {

// A temporary folder that the destructor removes.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "slipway-measure-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make a folder like " + pattern);
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;  // a left-over folder in /tmp is no failure
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace

std::vector<Measurement> measure_machine(const MeasureOptions& options, std::ostream& err) {
  const TemporaryFolder folder;
  LaunchOptions launch_options;
  std::string last_error;
  launch_options.line = [&](int rank, std::string_view line, bool is_error) {
    if (is_error) last_error = line;
    err << "rank " << rank << ": " << line << '\n';
  };
  const std::string folder_name = folder.path().string(), prefix = folder_name + "/measured";
  const auto ranks = local_ranks(options.rank_program, {"--measure", prefix, "--dtype", name_of(options.dtype)},
                                 options.ranks, 1, folder_name);
  const LaunchResult result = launch(ranks, launch_options);
  if (result.interrupted) throw std::runtime_error("interrupted while measuring");
  if (result.first_failure) {
    throw std::runtime_error("the micro-benchmarks failed: " + first_cause(result, folder_name) +
                             (last_error.empty() ? "" : " (" + last_error + ")"));
  }
  std::vector<Measurement> measurements;
  for (int rank = 0; rank < options.ranks; ++rank) {
    const std::string path = measured_path(prefix, rank);
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

}  // namespace slipway::scenarios
