#include "scenarios/commands/execute/rank_program.h"

#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <stdexcept>

#include "exec/run/launchers.h"
#include "exec/run/run_files.h"
#include "scenarios/commands/execute/cores.h"
#include "scenarios/commands/execute/free_port.h"
#include "scenarios/commands/execute/launch.h"
#include "scenarios/files/program_folder.h"

namespace slipway::scenarios {
namespace {

int number_of(const char* name, const char* text) {
  int number = -1;
  const std::string_view digits = text;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size() || number < 0) {
    throw std::runtime_error("the environment variable " + std::string(name) + "='" + text +
                             "' is no number; unset it to start the ranks here");
  }
  return number;
}

// For a rank that got SIGTERM or SIGKILL from the launcher: true if its verdict names only that signal.
bool is_a_signal(const std::string& cause) {
  return cause.starts_with("ended by SIGTERM") || cause.starts_with("killed ");
}

// A packed rank program looks for PyTorch when it starts, with find-torch beside it (setup/package). That is asked here
// too, so that one error comes before anything starts.
void require_torch(const std::filesystem::path& program) {
  const std::filesystem::path finder = program.parent_path() / "find-torch";
  if (::access(finder.c_str(), X_OK) != 0) return;
  std::string said;
  LaunchOptions options;
  options.line = [&said](int, std::string_view line, bool is_error) {
    if (is_error) said += (said.empty() ? "" : "\n") + std::string(line);
  };
  const LaunchResult result = launch({{0, {finder.string()}, {}, ""}}, options);
  if (result.interrupted) throw std::runtime_error("interrupted before anything was started");
  if (result.first_failure) throw std::runtime_error(said.empty() ? describe(*result.first_failure) : said);
}

// 128 random bits, the secret of one run's ranks.
std::string drawn_token() {
  std::random_device random;
  std::string token;
  for (int i = 0; i < 4; ++i) token += fmt::format("{:08x}", random());
  return token;
}

}  // namespace

std::string rank_program() {
  const char* named = std::getenv("SLIPWAY_RANK");
  const std::string path = named ? std::string(named) : (program_folder() / "slipway-rank").string();
  if (::access(path.c_str(), X_OK) == 0) {
    require_torch(path);
    return path;
  }
  throw std::runtime_error("the rank program " + path + " is not there or cannot be executed; " +
                           (named ? "set SLIPWAY_RANK to the path of slipway-rank"
                                  : "build it with LibTorch (make), or set SLIPWAY_RANK to its path"));
}

bool computes_on_gpus(const std::string& program) {
  return std::filesystem::path(program).filename() == "slipway-rank-cuda";
}

std::vector<RankProcess> local_ranks(const std::string& program, const std::vector<std::string>& arguments, int ranks,
                                     int ranks_per_process, const std::string& folder) {
  const int count = ranks / ranks_per_process;
  const std::string port = std::to_string(free_port()), world = std::to_string(count), token = drawn_token();
  std::vector<std::string> command{program};
  command.insert(command.end(), arguments.begin(), arguments.end());
  // A busy machine may take its time. The launcher sees a rank that does not start.
  command.insert(command.end(), {"--connect-timeout", "60"});
  for (const std::string& word : sharing_arguments(ranks_per_process)) command.push_back(word);
  std::vector<RankProcess> processes;
  const std::vector<int> cores = usable_cores();
  for (int process = 0; process < count; ++process) {
    const std::string number = std::to_string(process);
    const int first_rank = process * ranks_per_process;
    processes.push_back({first_rank,
                         command,
                         {{"RANK", number},
                          {"WORLD_SIZE", world},
                          {"LOCAL_RANK", number},
                          {"MASTER_ADDR", "127.0.0.1"},
                          {"MASTER_PORT", port},
                          {"SLIPWAY_TOKEN", token},
                          {"TORCHELASTIC_USE_AGENT_STORE", "False"}},
                         error_path(folder, first_rank),
                         cores_of_rank(cores, process, count)});
  }
  return processes;
}

std::vector<std::string> sharing_arguments(int ranks_per_process) {
  if (ranks_per_process == 1) return {};
  return {"--ranks-per-process", std::to_string(ranks_per_process)};
}

std::optional<JoinedRank> joined_rank(const std::function<const char*(const char*)>& variable) {
  const Launcher* launcher = launcher_in(variable);
  if (launcher == nullptr) return std::nullopt;
  const char* world = variable(launcher->world);
  if (world == nullptr) {
    throw std::runtime_error(std::string(launcher->rank) + " is set, but " + launcher->world +
                             " is not; set both to join a run, or neither to start the ranks here");
  }
  return JoinedRank{number_of(launcher->rank, variable(launcher->rank)), number_of(launcher->world, world),
                    launcher->name};
}

std::string first_cause(const LaunchResult& result, const std::string& folder, const std::string& reported) {
  std::ifstream file(verdict_path(folder));
  int rank = 0;
  std::string cause;
  if (file >> rank && std::getline(file >> std::ws, cause)) {
    const auto end =
        std::find_if(result.ends.begin(), result.ends.end(), [&](const RankEnd& e) { return e.rank == rank; });
    // A signal is known best by who collected the process.
    if (end != result.ends.end() && end->signal > 0 && !end->stopped_by_launcher) return describe(*end);
    // A rank that we stopped blames our signal, when the one that died first had no time to be watched.
    const bool blames_us = end != result.ends.end() && end->stopped_by_launcher && is_a_signal(cause);
    if (blames_us && result.first_failure) return describe(*result.first_failure);
    return (rank < 0 ? "the launcher's agent" : "rank " + std::to_string(rank)) + " failed: " + cause;
  }
  if (!result.first_failure) return "";
  // The rank that ended first need not have failed first, and on a full disk no verdict can be written.
  const bool is_only_a_status = result.first_failure->signal == 0 && result.first_failure->message.empty();
  return is_only_a_status && !reported.empty() ? reported : describe(*result.first_failure);
}

std::string cause_in(std::string_view line) {
  constexpr std::string_view rank = "rank ", failed = " failed: ", stops = " stops: ";
  if (!line.starts_with(rank)) return "";
  const std::string_view after = line.substr(std::min(line.find_first_not_of("0123456789", rank.size()), line.size()));
  if (after.starts_with(failed)) return std::string(line);
  return after.starts_with(stops) ? std::string(after.substr(stops.size())) : "";
}

}  // namespace slipway::scenarios
