#include "scenarios/commands/execute/run_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "exec/run/checkpoint_folder.h"
#include "exec/run/loss_lines.h"
#include "exec/run/run_files.h"
#include "scenarios/files/output_file.h"
#include "scenarios/files/usage_error.h"
#include "scenarios/predict/readable.h"

namespace slipway::scenarios {

namespace fs = std::filesystem;

namespace {

// Calls take(line) for every line of a rank's file; its exceptions get file and line. A rank that was killed while it
// wrote leaves a last line without its end, which may look whole ("12" of "123"). That line is left out, with a note
// in `notes`.
template <typename Take>
void read_lines(const std::string& path, std::vector<std::string>& notes, Take take) {
  std::ifstream in(path);
  if (!in) {
    throw std::runtime_error(path + " is not there; ranks on other machines need a folder that all of them share");
  }
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    const std::string place = path + ":" + std::to_string(number);
    if (in.eof()) {
      notes.push_back(place + ": the last line is cut off (its rank was ended while it wrote); it is left out");
      return;
    }
    try {
      take(line);
    } catch (const std::exception& error) {
      throw std::runtime_error(place + ": " + error.what());
    }
  }
}

std::int64_t count_from(const std::string& text, const char* what) {
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size())
    throw std::runtime_error(std::string("the ") + what + " is no whole number: \"" + text + "\"");
  return count;
}

// "step samples loss [learning-rate [batch [norm-squared variance]]] [evaluation=loss]"
LossPoint loss_from(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> fields{std::istream_iterator<std::string>(in), {}};
  const std::string mark = "evaluation=";
  std::optional<double> evaluation;
  if (!fields.empty() && fields.back().starts_with(mark)) {
    evaluation = number_from(fields.back().substr(mark.size()), "held-out loss");
    fields.pop_back();
  }
  const std::size_t count = fields.size();
  if (count < 3 || count == 6 || count > 7)
    throw std::runtime_error(
        "expected \"step samples loss [learning-rate [batch [norm-squared variance]]] [evaluation=loss]\", not \"" +
        line + "\"");
  const std::int64_t step = count_from(fields[0], "step");
  if (step < 0 || step > std::numeric_limits<int>::max()) throw std::runtime_error("there is no step " + fields[0]);
  LossPoint point{static_cast<int>(step), count_from(fields[1], "number of samples"), number_from(fields[2], "loss")};
  point.evaluation_loss = evaluation;
  if (count > 3) point.learning_rate = number_from(fields[3], "learning rate");
  if (count > 4) point.batch = count_from(fields[4], "batch");
  if (count < 7) return point;
  point.gradient_square = number_from(fields[5], "squared norm of the gradient");
  point.gradient_variance = number_from(fields[6], "variance of the gradient");
  return point;
}

std::vector<LossPoint> read_losses(const std::string& folder, std::vector<std::string>& notes) {
  std::vector<LossPoint> losses;
  read_lines(losses_path(folder), notes, [&](const std::string& line) { losses.push_back(loss_from(line)); });
  return losses;
}

// Writes losses.csv and returns where the losses are. A full disk may have ended the run.
std::string written_losses(const std::string& folder, const std::vector<LossPoint>& losses) {
  try {
    write_losses_csv(losses_csv_path(folder), losses);
    return "losses.csv";
  } catch (const std::exception& error) {
    return "in rank-0.losses; " + std::string(error.what());
  }
}

// "rank 1: no such tensor"; the exit status where there is no message.
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

void refuse_finished_run(const std::string& folder) {
  for (const std::string& path : {trace_path(folder), losses_csv_path(folder)})
    if (std::filesystem::exists(path))
      throw UsageError(path + " is of an earlier run, which this one would replace; give --out another folder, or " +
                       "--overwrite to replace it");
}

bool is_unfinished(const std::string& folder, int steps) {
  const bool has_failed = std::filesystem::exists(verdict_path(folder));
  const std::vector<LossLine> losses = loss_lines(losses_path(folder));
  if (std::filesystem::exists(trace_path(folder))) return false;
  return has_failed || (!losses.empty() && losses.back().step + 1 < steps);
}

bool has_done_a_step(const std::string& folder, int done) {
  const std::vector<LossLine> lines = loss_lines(losses_path(folder));
  return std::any_of(lines.begin(), lines.end(), [&](const LossLine& line) { return line.step >= done; });
}

bool has_records_of_two_steps(const std::string& folder, int rank) {
  std::ifstream records(records_path(folder, rank));
  std::optional<int> first;
  for (std::string line; std::getline(records, line) && !records.eof();) {
    const int step = record_from_text(line).step;
    if (first.value_or(step) != step) return true;
    first = step;
  }
  return false;
}

std::optional<int> unmerged_from(const std::string& folder, int ranks, int steps) {
  namespace fs = std::filesystem;
  if (fs::exists(trace_path(folder)) || fs::exists(verdict_path(folder))) return std::nullopt;
  const std::vector<LossLine> losses = loss_lines(losses_path(folder));
  if (losses.empty() || losses.back().step + 1 != steps) return std::nullopt;
  for (int rank = 0; rank < ranks; ++rank)
    if (!fs::exists(records_path(folder, rank))) return std::nullopt;
  int last = -1;
  std::ifstream records(records_path(folder, 0));
  for (std::string line; std::getline(records, line) && !records.eof();)
    last = std::max(last, record_from_text(line).step);
  return last < 0 || last >= steps ? std::nullopt : std::optional(steps - 1 - last);
}

void write_losses_csv(const std::string& folder) {
  std::vector<std::string> printed_when_merged;
  write_losses_csv(losses_csv_path(folder), read_losses(folder, printed_when_merged));
}

MergedRun merged_run(const std::string& folder, int ranks, int steps) {
  MergedRun run;
  Trace& trace = run.trace;
  trace.engine = "libtorch";
  trace.ranks = ranks;
  trace.steps = steps;
  for (int rank = 0; rank < ranks; ++rank) {
    read_lines(records_path(folder, rank), run.notes,
               [&](const std::string& line) { trace.records.push_back(record_from_text(line)); });
  }
  trace.losses = read_losses(folder, run.notes);
  if (trace.losses.empty()) throw std::runtime_error("no loss of any step is in " + losses_path(folder));
  split_waiting(trace);
  return run;
}

void write_losses_csv(const std::string& path, const std::vector<LossPoint>& losses) {
  const auto any = [&](auto member) {
    return std::any_of(losses.begin(), losses.end(),
                       [&](const LossPoint& point) { return (point.*member).has_value(); });
  };
  const auto cell = [](const auto& value) { return value ? fmt::format(",{}", *value) : ","; };
  const bool grows = any(&LossPoint::batch), has_norms = any(&LossPoint::gradient_square),
             evaluates = any(&LossPoint::evaluation_loss);
  OutputFile file(path);
  file.stream() << "step,samples,loss,learning_rate" << (grows ? ",batch" : "")
                << (has_norms ? ",gradient_square,gradient_variance" : "") << (evaluates ? ",evaluation_loss" : "")
                << '\n';
  for (const LossPoint& point : losses) {
    file.stream() << fmt::format("{},{},{}", point.step + 1, point.samples, point.loss) << cell(point.learning_rate);
    if (grows) file.stream() << cell(point.batch);
    if (has_norms) file.stream() << cell(point.gradient_square) << cell(point.gradient_variance);
    if (evaluates) file.stream() << cell(point.evaluation_loss);
    file.stream() << '\n';
  }
  file.commit();
}

std::string kept_text(const std::string& folder, int first_rank, int last_rank) {
  std::string text;
  std::vector<std::string> notes;
  if (first_rank == 0 && std::filesystem::exists(losses_path(folder))) {
    const std::vector<LossPoint> losses = read_losses(folder, notes);
    if (!losses.empty()) {
      text = "losses of " + counted(static_cast<std::int64_t>(losses.size()), "step") + " (" +
             written_losses(folder, losses) + ")";
    }
  }
  std::string ranks;
  for (int rank = first_rank; rank <= last_rank; ++rank) {
    std::error_code none;
    const auto bytes = std::filesystem::file_size(records_path(folder, rank), none);
    if (!none && bytes > 0) ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
  }
  if (!ranks.empty()) text += (text.empty() ? "" : "; ") + std::string("records of rank ") + ranks;
  if (const auto steps = complete_checkpoints(folder); first_rank == 0 && !text.empty() && !steps.empty())
    text += "; checkpoint of step " + std::to_string(steps.back()) + " (--resume latest)";
  const char* const nothing =
      first_rank == 0 ? "no step was completed" : "no records were written (rank 0 keeps the losses)";
  return (text.empty() ? nothing : "kept: " + text) + "; no trace was made; messages: " + folder;
}

void mark_done(const std::string& folder, int rank, int status) {
  OutputFile file(done_path(folder, rank));
  file.stream() << status << '\n';
  file.commit();
}

void wait_for_done(const std::string& folder, int ranks, double seconds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  for (int rank = 0; rank < ranks; ++rank) {
    while (!std::filesystem::exists(done_path(folder, rank))) {
      if (std::chrono::steady_clock::now() > deadline) {
        throw std::runtime_error("rank " + std::to_string(rank) + " has left nothing in " + folder + " after " +
                                 fmt::format("{:.0f} s", seconds) +
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

}  // namespace slipway::scenarios
