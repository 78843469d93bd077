// slipway-rank: see exec/process/arguments.h for the command line and exec/rank/session.h for a rank's life.
#include <ATen/Parallel.h>

#include <cstdio>
#include <exception>

#include "exec/files/bundle_file.h"
#include "exec/process/arguments.h"
#include "exec/process/failure.h"
#include "exec/process/process.h"
#include "exec/rank/measure.h"
#include "exec/rank/run_bundle.h"
#include "exec/run/executable.h"
#include "exec/transport/device.h"
#include "schedules/graph/bubble_work.h"

namespace slipway::exec {
namespace {

constexpr int nothing_started = 2;

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

void use_threads(int threads) {
  at::set_num_interop_threads(1);
  at::set_num_threads(threads);
}

void refuse_what_cannot_run(const Bundle& bundle, const std::string& path) {
  std::string text;
  for (const Refusal& refusal : not_executable(bundle)) {
    text += (text.empty() ? "" : "\nslipway-rank: ") + path + ": " + text_of(refusal);
  }
  if (!text.empty()) throw std::runtime_error(text);
}

// Suggests the present number of ranks per process, then the present number of processes.
std::string remedies(int ranks, int processes, int each) {
  const auto sharing = [](int number) { return "give --ranks-per-process " + std::to_string(number); };
  std::string text = ranks % each == 0 ? "start " + std::to_string(ranks / each)
                                       : "start " + std::to_string(ranks) + " and " + sharing(1);
  const int other = ranks / processes;
  if (ranks % processes == 0 && other != each) text += ", " + sharing(other);
  return text;
}

[[noreturn]] void refuse_world(const Arguments& arguments, int ranks, const RankEnvironment& started) {
  const int each = arguments.ranks_per_process;
  const int processes = started.world;
  throw std::runtime_error(arguments.bundle + " is made for " + std::to_string(ranks) + " ranks, but " +
                           std::to_string(processes) +
                           (each > 1 ? " of --ranks-per-process " + std::to_string(each) : "") +
                           (processes == 1 ? " was" : " were") + " started (launcher: " + started.launcher + "); " +
                           remedies(ranks, processes, each) + " or lower the scenario again");
}

double connect_seconds(const Arguments& arguments, const RankEnvironment& environment) {
  if (arguments.connect_seconds > 0) return arguments.connect_seconds;
  return connect_seconds_for(environment.world, age_of(this_process()));
}

// Replaces the bundle's data paths by those of the arguments.
void read_data_from(const Arguments& arguments, Bundle& bundle) {
  if (!arguments.data.empty()) bundle.run.data = arguments.data;
  if (arguments.evaluation_data.empty()) return;
  if (!evaluates(bundle.graph))
    throw std::runtime_error("--evaluation-data: " + arguments.bundle +
                             " evaluates nothing; leave it out, or lower the scenario " +
                             "with schedule.fill evaluation");
  bundle.run.evaluation_data = arguments.evaluation_data;
}

int run_program(const Arguments& arguments) {
  const RankEnvironment started = rank_environment(process_environment());
  const RankEnvironment environment = hosting(started, arguments.ranks_per_process);
  BundleFile file = read_bundle_file(arguments.bundle);
  read_data_from(arguments, file.bundle);
  if (arguments.steps > 0) file.bundle.run.steps = arguments.steps;
  if (arguments.dump_step > file.bundle.run.steps)
    throw std::runtime_error("--dump-gradients " + std::to_string(arguments.dump_step) +
                             ": the training ends at step " + std::to_string(file.bundle.run.steps) +
                             "; name one of its steps");
  refuse_what_cannot_run(file.bundle, arguments.bundle);
  const int ranks = rank_count(file.bundle.graph.step.layout);
  if (ranks != environment.world) refuse_world(arguments, ranks, started);
  prepare_device(environment.processes() > 1, file.bundle.graph.step.dtype);
  Session session({environment, arguments.out, file.checksum, connect_seconds(arguments, environment),
                   file.bundle.run.heartbeat_s});
  use_threads(arguments.threads);
  session.run([&](Seat& seat) { run_bundle(seat, file.bundle, arguments); });
  return 0;
}

int run_measurements(const Arguments& arguments) {
  const RankEnvironment environment = rank_environment(process_environment());
  prepare_device(environment.processes() > 1, arguments.dtype);
  Session session({environment, folder_of(arguments.out), "micro-benchmarks", connect_seconds(arguments, environment)});
  use_threads(arguments.threads);
  session.run([&](Seat& seat) { measure(seat, arguments); });
  return 0;
}

int run(const std::vector<std::string>& words) {
  const Arguments arguments = arguments_from(words);
  switch (arguments.mode) {
    case Arguments::Mode::help:
      std::fputs(usage, stdout);
      return 0;
    case Arguments::Mode::version:
      std::puts("slipway-rank " SLIPWAY_VERSION);
      return 0;
    case Arguments::Mode::measure:
      return run_measurements(arguments);
    case Arguments::Mode::run:
      return run_program(arguments);
  }
  return nothing_started;
}

}  // namespace
}  // namespace slipway::exec

int main(int count, char** words) {
  try {
    return slipway::exec::run({words + 1, words + count});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "slipway-rank: %s\n", slipway::exec::without_stack(error.what()).c_str());
    return slipway::exec::nothing_started;
  }
}
