#include "scenarios/run_folder.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "exec/run_files.h"
#include "scenarios/output_file.h"

namespace slipway {
namespace {

void read_records(const std::string& path, std::vector<TraceRecord>& records) {
  std::ifstream in(path);
  if (!in) {
    throw std::runtime_error(
        "the records " + path +
        " are not there; ranks on other machines need a folder that all of them share");
  }
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    try {
      records.push_back(record_from_text(line));
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(path + ":" + std::to_string(number) + ": " + error.what());
    }
  }
}

std::vector<LossPoint> read_losses(const std::string& path) {
  std::ifstream in(path);
  std::vector<LossPoint> losses;
  LossPoint point;
  std::string loss;  // as text: streams do not read "nan"
  while (in >> point.step >> point.samples >> loss) {
    point.loss = std::stod(loss);
    losses.push_back(point);
  }
  if (!in.eof() || losses.empty())
    throw std::runtime_error("the losses " + path + " are missing or damaged");
  return losses;
}

}  // namespace

void clear_ranks(const std::string& folder, int first_rank, int last_rank) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    throw std::runtime_error("cannot make the folder " + folder + ": " + error.message() +
                             "; name a folder that you may create or write to");
  }
  for (int rank = first_rank; rank <= last_rank; ++rank) {
    for (const std::string& path : {bundle_path(folder, rank), records_path(folder, rank), error_path(folder, rank),
                                    done_path(folder, rank)}) {
      std::filesystem::remove(path);
    }
  }
  if (first_rank != 0) return;
  std::filesystem::remove(losses_path(folder));
  std::filesystem::remove(verdict_path(folder));
}

Trace merged_trace(const std::string& folder, int ranks, int steps) {
  Trace trace;
  trace.engine = "libtorch";
  trace.ranks = ranks;
  trace.steps = steps;
  for (int rank = 0; rank < ranks; ++rank) read_records(records_path(folder, rank), trace.records);
  trace.losses = read_losses(losses_path(folder));
  split_waiting(trace);
  return trace;
}

void write_losses_csv(const std::string& path, const std::vector<LossPoint>& losses) {
  OutputFile file(path);
  file.stream() << "step,samples,loss\n";
  for (const LossPoint& point : losses) {
    file.stream() << fmt::format("{},{},{}\n", point.step, point.samples, point.loss);
  }
  file.commit();
}

void mark_done(const std::string& folder, int rank, int status) {
  OutputFile file(done_path(folder, rank));
  file.stream() << status << '\n';
  file.commit();
}

namespace {

// "rank 1: no such tensor", or without a message its exit status.
std::string failure_of(const std::string& folder, int rank) {
  const std::string file = done_path(folder, rank);
  std::ifstream in(file);
  int status = 0;
  if (!(in >> status)) throw std::runtime_error(file + " is damaged; start the run again");
  if (status == 0) return "";
  std::ifstream error(error_path(folder, rank));
  std::string cause;
  std::getline(error, cause);
  return "rank " + std::to_string(rank) + " ended with exit status " + std::to_string(status) +
         (cause.empty() ? "" : ": " + cause);
}

}  // namespace

void wait_for_done(const std::string& folder, int ranks, double seconds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  for (int rank = 0; rank < ranks; ++rank) {
    while (!std::filesystem::exists(done_path(folder, rank))) {
      if (std::chrono::steady_clock::now() > deadline) {
        throw std::runtime_error("rank " + std::to_string(rank) + " has left nothing in " + folder +
                                 " after " + fmt::format("{:.0f} s", seconds) +
                                 "; give --out a folder that the machines of all ranks share");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  std::string failures;
  for (int rank = 0; rank < ranks; ++rank) {
    if (const std::string failure = failure_of(folder, rank); !failure.empty())
      failures += (failures.empty() ? "" : "\n") + failure;
  }
  if (!failures.empty()) throw std::runtime_error(failures + "\n(nothing is merged; records: " + folder + ")");
}

}  // namespace slipway
