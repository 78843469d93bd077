#include "exec/process/failure.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "exec/run/run_files.h"
#include "exec/run/whole_file.h"

namespace slipway::exec {
namespace {

std::optional<std::string> line_in(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line) || line.empty()) return std::nullopt;
  return line;
}

// Makes a cause one line, as it is shown and stored.
std::string flat(const std::string& cause) {
  std::string text = without_stack(cause);
  for (char& c : text) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return text;
}

}  // namespace

std::string without_stack(const std::string& message) {
  const auto end =
      std::min(message.find("\nException raised from "), message.find("\nCUDA kernel errors might be asynchronously"));
  return message.substr(0, end);
}

std::string to_text(const Failure& failure) { return std::to_string(failure.rank) + " " + flat(failure.cause); }

Failure failure_from_text(const std::string& text) {
  const std::size_t space = text.find(' ');
  if (space == std::string::npos) throw std::runtime_error("not a failure record: " + text);
  return {std::stoi(text.substr(0, space)), text.substr(space + 1)};
}

std::string line_of(int rank, const Failure& failure) {
  const std::string who = failure.rank < 0 ? "the launcher's agent" : "rank " + std::to_string(failure.rank);
  const std::string what = who + " failed: " + flat(failure.cause);
  return rank == failure.rank ? what : "rank " + std::to_string(rank) + " stops: " + what;
}

void forget_failures(const std::string& directory, int rank) {
  unlink(error_path(directory, rank).c_str());
  if (rank == 0) unlink(verdict_path(directory).c_str());
}

void write_own_error(const std::string& directory, int rank, const std::string& cause) {
  try {
    write_whole_file(error_path(directory, rank), flat(cause) + "\n");
  } catch (const std::runtime_error&) {
    // The disk may be what failed; the rank prints its cause as well.
  }
}

void write_verdict(const std::string& directory, const Failure& failure) {
  const std::string line = to_text(failure) + "\n";
  const int file = open(verdict_path(directory).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0) return;  // another rank was first, or the directory is gone: the verdict is printed anyway
  if (write(file, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    unlink(verdict_path(directory).c_str());
  close(file);
}

std::optional<Failure> read_verdict(const std::string& directory) {
  const auto line = line_in(verdict_path(directory));
  if (!line) return std::nullopt;
  return failure_from_text(*line);
}

std::optional<Failure> failure_of_ended(const ProcessIdentity& process, int rank, const std::string& directory,
                                        double seconds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  auto cause = cause_of_end(process);
  if (!cause) return std::nullopt;
  const std::string collected = "killed or ended without a report";
  while (*cause == collected) {
    const auto reported = line_in(error_path(directory, rank));
    if (reported) {
      cause = *reported;
      break;
    }
    if (std::chrono::steady_clock::now() >= deadline) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return Failure{rank, *cause + " (" + describe(process) + ")"};
}

}  // namespace slipway::exec
