#include "scenarios/commands/execute/set_aside.h"

#include <cstdint>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "exec/run/checkpoint_folder.h"
#include "exec/run/loss_lines.h"
#include "exec/run/run_files.h"
#include "exec/run/whole_file.h"

namespace slipway::scenarios {

namespace {

namespace fs = std::filesystem;

std::string name_in(const std::string& folder, const std::string& path) { return path.substr(folder.size() + 1); }

// The first free name: a course may be left more than once.
std::string abandoned_path(const std::string& checkpoint) {
  std::string path = checkpoint + ".abandoned";
  for (int number = 2; fs::exists(path); ++number) path = checkpoint + ".abandoned-" + std::to_string(number);
  return path;
}

std::string aside_path(const std::string& folder, int first_rank) {
  return folder + "/replaced-" + std::to_string(first_rank);
}
std::string dropped_path(const std::string& folder, int first_rank) {
  return folder + "/dropped-" + std::to_string(first_rank);
}

void make_folder(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw std::runtime_error("cannot make the folder " + folder + ": " + error.message() +
                             "; name a folder that you may create or write to");
}

// Moves the content of one folder into another, and joins folders that exist in both.
void move_all(const std::string& from, const std::string& to) {
  fs::create_directories(to);
  for (const auto& entry : fs::directory_iterator(from)) {
    const std::string target = to + "/" + entry.path().filename().string();
    if (entry.is_directory() && fs::exists(target))
      move_all(entry.path().string(), target);
    else
      fs::rename(entry.path(), target);
  }
  fs::remove_all(from);
}

// Returns false where nothing had been set aside.
bool bring_back(const std::string& aside, const std::string& folder) {
  if (!fs::exists(aside)) return false;
  move_all(aside, folder);
  return true;
}

}  // namespace

void restore_killed_start(const std::string& folder) {
  const std::string aside = aside_path(folder, 0);
  if (!fs::exists(aside)) return;
  const FolderLock lock(folder);
  bring_back(aside, folder);
}

SetAside::SetAside(std::string folder, int first_rank, int last_rank, std::optional<int> goes_on_from)
    : folder_(std::move(folder)),
      aside_(aside_path(folder_, first_rank)),
      first_rank_(first_rank),
      last_rank_(last_rank),
      goes_on_(goes_on_from.has_value()) {
  make_folder(folder_);
  if (first_rank_ == 0) lock_.emplace(folder_);
  std::error_code none;
  fs::remove_all(dropped_path(folder_, first_rank_), none);  // left by a run that was killed while it removed them
  bring_back(aside_, folder_);                               // left by a start that was killed before its first step
  try {
    take_files();
    if (first_rank_ == 0 && goes_on_from) {
      keep_losses_before(*goes_on_from);
      take_later_checkpoints(*goes_on_from);
    }
  } catch (...) {
    put_back();
    throw;
  }
}

SetAside::~SetAside() {
  put_back();
  if (removal_.joinable()) removal_.join();
}

void SetAside::take_files() {
  std::vector<std::string> kept, messages;  // files of the run, and messages about its failure
  for (int rank = first_rank_; rank <= last_rank_; ++rank) {
    kept.insert(kept.end(), {bundle_path(folder_, rank), weights_path(folder_, rank), records_path(folder_, rank)});
    messages.insert(messages.end(), {error_path(folder_, rank), done_path(folder_, rank)});
  }
  if (first_rank_ == 0) {
    kept.insert(kept.end(), {bundle_path(folder_), weights_path(folder_), losses_path(folder_), trace_path(folder_),
                             losses_csv_path(folder_)});
    if (!goes_on_) kept.push_back(checkpoints_path(folder_));
    messages.push_back(verdict_path(folder_));
  }
  for (const std::string& path : kept) {
    if (!fs::exists(fs::symlink_status(path))) continue;  // a link that leads nowhere must not be written through
    fs::create_directories(aside_);
    fs::rename(path, aside_ + "/" + name_in(folder_, path));
  }
  for (const std::string& path : messages) fs::remove(path);
}

void SetAside::keep_losses_before(int from) const {
  const std::string earlier = aside_ + "/" + name_in(folder_, losses_path(folder_));
  if (!fs::exists(earlier)) return;
  write_whole_file(losses_path(folder_), losses_before(earlier, from));
}

void SetAside::take_later_checkpoints(int from) {
  for (const std::int64_t step : complete_checkpoints(folder_)) {
    if (step <= from) continue;
    const std::string later = checkpoint_path(folder_, step);
    fs::create_directories(checkpoints_path(aside_));
    fs::rename(later, checkpoint_path(aside_, step));
    abandoned_.push_back(abandoned_path(later));
  }
}

void SetAside::drop() noexcept {
  if (std::exchange(dropped_, true)) return;
  try {
    if (!fs::exists(aside_)) return;
    if (goes_on_)
      for (const std::int64_t step : complete_checkpoints(aside_))
        fs::rename(checkpoint_path(aside_, step), abandoned_path(checkpoint_path(folder_, step)));
    // Renamed at once: the next start would put back a half of it.
    const std::string dropped = dropped_path(folder_, first_rank_);
    fs::rename(aside_, dropped);
    removal_ = std::thread([dropped] {
      std::error_code left;  // leftovers do no harm; the next start removes them
      fs::remove_all(dropped, left);
    });
  } catch (const std::exception&) {  // leftovers do no harm and must not end a training
  }
}

bool SetAside::put_back() noexcept {
  if (dropped_) return false;
  try {
    return bring_back(aside_, folder_);
  } catch (const std::exception&) {  // it stays aside; the next start tries again
    return false;
  }
}

}  // namespace slipway::scenarios
