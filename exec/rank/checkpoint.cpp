#include "exec/rank/checkpoint.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "exec/run/checkpoint_file.h"

namespace slipway::exec {
namespace {

std::string key_of(std::int64_t step, int rank) {
  return "checkpoint/" + std::to_string(step) + "/" + std::to_string(rank);
}

}  // namespace

Checkpointer::Checkpointer(CheckpointOptions options, const RankModel& model, std::unique_ptr<Store> store)
    : options_(std::move(options)), model_(model), store_(std::move(store)) {
  if (options_.every > 0 && options_.world > 1) require_one_folder();
}

// Rank 0 makes a file of a name that no other run has, and all look for it. What a killed run leaves of it is removed with
// half-written checkpoints.
void Checkpointer::require_one_folder() {
  constexpr double visible_s = 10;  // a network's file system may show a new file late
  constexpr auto pause = std::chrono::milliseconds(50);
  const std::string key = "checkpoint/folder";
  const std::string folder = checkpoints_path(options_.folder), ending = partial_path("");
  std::string mine = folder + "/one-folder-XXXXXX" + ending;
  if (options_.rank == 0) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    const int file = error ? -1 : ::mkstemps(mine.data(), static_cast<int>(ending.size()));
    if (file < 0)
      throw std::runtime_error("cannot write to " + folder + ": " + (error ? error.message() : std::strerror(errno)) +
                               "; give --out a folder that you may write to");
    ::close(file);
    store_->set(key, std::filesystem::path(mine).filename());
  }
  const std::string seen = folder + "/" + store_->get(key, while_alive_s);
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(visible_s);
  while (!std::filesystem::exists(seen) && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(pause);
  const bool is_one = std::filesystem::exists(seen);
  store_barrier(*store_, key + "/looked", options_.world, while_alive_s);
  if (options_.rank == 0) {
    std::error_code still_needed;
    std::filesystem::remove(mine, still_needed);
    std::filesystem::remove(folder, still_needed);  // only where it is empty
  }
  if (!is_one)
    throw std::runtime_error(
        "its folder " + options_.folder +
        " is not that of rank 0, so that no checkpoint could be whole; give all ranks one --out on "
        "a file system that their nodes share, or set run.checkpoint_steps to 0");
}

bool Checkpointer::is_due(std::int64_t steps) const {
  return options_.every > 0 && (steps % options_.every < options_.window || steps == options_.last_step);
}

void Checkpointer::step_ended(const Progress& done) {
  if (!is_due(done.steps)) return;
  try {
    save(done);
  } catch (...) {
    failed_step_ = done.steps;
    throw;
  }
}

void Checkpointer::make_room() const {
  if (failed_step_ == 0) return;
  std::error_code left;  // the next start removes it
  std::filesystem::remove_all(partial_path(checkpoint_path(options_.folder, failed_step_)), left);
}

void Checkpointer::save(const Progress& done) {
  const std::int64_t step = done.steps;
  const std::string partial = partial_path(checkpoint_path(options_.folder, step));
  std::error_code error;
  std::filesystem::create_directories(partial, error);
  if (error) throw std::runtime_error("cannot make the folder " + partial + ": " + error.message());
  if (std::filesystem::is_symlink(partial))
    throw std::runtime_error(partial + " is a link that no run made; remove it, and look who may write to that folder");
  ShardWriter writer(partial, options_.rank);
  model_.save(writer);
  const auto checksum = writer.finish();
  store_->set(key_of(step, options_.rank), checksum ? std::to_string(*checksum) : "nothing");
  if (store_->add("checkpoint/" + std::to_string(step) + "/saved", 1) == options_.world) commit(done);
}

// Runs on one rank, when all have written.
void Checkpointer::commit(const Progress& done) {
  const std::int64_t step = done.steps;
  Manifest manifest = options_.training;
  manifest.step = step;
  manifest.samples = done.samples;
  manifest.batch = done.batch;
  for (int rank = 0; rank < options_.world; ++rank) {
    const std::string checksum = store_->get(key_of(step, rank), while_alive_s);
    store_->forget(key_of(step, rank));
    if (checksum != "nothing") manifest.shards[rank] = std::stoull(checksum);
  }
  const std::string whole = checkpoint_path(options_.folder, step), partial = partial_path(whole);
  write_durably(manifest_path(partial), to_text(manifest));
  sync_folder(partial);
  std::filesystem::remove_all(whole);  // of an earlier run that came as far, resumed from before
  std::filesystem::rename(partial, whole);
  sync_folder(checkpoints_path(options_.folder));
  remove_old(step);
}

void Checkpointer::remove_old(std::int64_t newest) const {
  std::vector<std::int64_t> steps = complete_checkpoints(options_.folder);
  std::erase_if(steps, [&](std::int64_t step) { return step > newest; });
  for (int left = static_cast<int>(steps.size()) - options_.keep, i = 0; i < left; ++i) {
    const std::string old = checkpoint_path(options_.folder, steps[i]);
    std::filesystem::rename(old, partial_path(old));  // no longer complete if this process is killed now
    std::filesystem::remove_all(partial_path(old));
  }
}

}  // namespace slipway::exec
