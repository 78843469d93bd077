#include "exec/rank/run_bundle.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "exec/lanes/lanes.h"
#include "exec/lanes/segment_replay.h"
#include "exec/lanes/turns.h"
#include "exec/rank/batches.h"
#include "exec/rank/checkpoint.h"
#include "exec/rank/losses.h"
#include "exec/rank/memory_meter.h"
#include "exec/rank/rank_model.h"
#include "exec/rank/rank_transports.h"
#include "exec/rank/records.h"
#include "exec/run/checkpoint_folder.h"
#include "exec/run/executable.h"
#include "exec/run/training_identity.h"
#include "exec/transport/device.h"
#include "exec/transport/transport_watch.h"

namespace slipway::exec {
namespace {

class BundleRun {
 public:
  // `resumed`: the checkpoint to go on from; `training`: its identity, for the checkpoints that the run makes.
  BundleRun(Seat& seat, const Bundle& bundle, const Arguments& arguments, std::optional<CheckpointReader> resumed,
            const Manifest& training);
  void run();

 private:
  void replay_segments();
  void align_clocks(const std::string& round);
  void agree_on_origin();
  LaneHooks hooks();
  void perform(TaskId task, int step);
  int first_steps() const;
  bool may_load(int step) const;
  void move_first(TaskId task, Message& message);
  Turns::Turn turn_to_start(int step);
  void step_ended(int step, const std::vector<Nanoseconds>& ends);
  Progress agreed(Progress done, const std::optional<GradientNorms>& norms);
  StepSpan next_steps(int done);
  void run_lanes();
  void write() const;
  void write_what_is_left() const;

  Seat& seat_;
  const Bundle& bundle_;
  const TaskGraph* graph_;  // of the running steps
  const Arguments& arguments_;
  int rank_;
  std::optional<CheckpointReader> resumed_;  // until the model has read it
  Progress first_;
  StepPrograms programs_;
  Progress now_;  // progress after step_ended; lanes have met before they read it
  at::Device device_;
  std::unique_ptr<DeviceQueue> queue_;       // null on the processor
  std::unique_ptr<SegmentCapture> capture_;  // null: segments run operator by operator
  RankTransports transports_;
  MemoryMeter memory_;  // before the model, which it counts
  RankModel model_;
  LossReporter losses_;
  Checkpointer checkpoints_;
  LaneRunner lanes_;
  std::vector<int> foreign_;        // ranks with another clock than rank 0's
  mutable std::mutex clock_mutex_;  // of `clock_`: write() may come from the heartbeat's watch thread
  std::vector<ClockSample> clock_;
  Nanoseconds origin_ = 0;
  int first_of_program_ = 0;  // step of the run
};

// The name of the folder that this run goes on from; empty: it starts.
std::string chosen_checkpoint(const std::string& what, const std::string& folder) {
  if (what == resume_latest) return resolve_checkpoint(what, folder);
  const NewestWhole newest = newest_whole_checkpoint(folder);
  for (const std::string& why : newest.damaged) std::printf("not resumed from: %s\n", why.c_str());
  if (!newest.checkpoint.empty()) std::printf("resumes from %s\n", newest.checkpoint.c_str());
  std::fflush(stdout);
  return newest.checkpoint;
}

// Rank 0 chooses among the run's checkpoints, because a network file system may show other ranks another state.
std::optional<CheckpointReader> checkpoint_of(Seat& seat, const Arguments& arguments) {
  if (arguments.resume.empty()) return std::nullopt;
  if (!resumes_here(arguments.resume)) return CheckpointReader(resolve_checkpoint(arguments.resume, arguments.out));
  constexpr const char *key = "resume", *start = "/";  // no folder's name
  if (seat.environment().rank == 0) {
    const std::string chosen = chosen_checkpoint(arguments.resume, arguments.out);
    seat.store().set(key, chosen.empty() ? start : std::filesystem::path(chosen).filename().string());
  }
  const std::string name = seat.store().get(key, while_alive_s);
  if (name == start) return std::nullopt;
  return CheckpointReader(checkpoints_path(arguments.out) + "/" + name);
}

// The identity of the training, for which its data are read once. Without checkpoints it is not needed.
Manifest identity_of(const Bundle& bundle, const std::optional<CheckpointReader>& checkpoint) {
  if (!checkpoint && bundle.run.checkpoint_steps == 0) return {};
  Manifest identity = training_of(bundle.graph.step.model, bundle.run);
  if (!checkpoint) return identity;
  const std::string other = other_training(checkpoint->folder(), checkpoint->manifest(), identity);
  if (!other.empty()) throw std::runtime_error(other);
  return identity;
}

Progress progress_of(const std::optional<CheckpointReader>& checkpoint) {
  if (!checkpoint) return {};
  const Manifest& manifest = checkpoint->manifest();
  return {manifest.step, manifest.samples, manifest.batch};
}

// The progress at the start, with the batch of its first step.
Progress beginning(const Bundle& bundle, const std::optional<CheckpointReader>& checkpoint) {
  Progress begin = progress_of(checkpoint);
  if (begin.steps >= bundle.run.steps)
    throw std::runtime_error("the checkpoint is of step " + std::to_string(begin.steps) +
                             " and the training ends at step " + std::to_string(bundle.run.steps) +
                             ": nothing is left to do; raise run.steps");
  begin.batch = first_batch(bundle, begin);
  return begin;
}

CheckpointOptions checkpoint_options(const RankEnvironment& at, const Bundle& bundle, const std::string& folder,
                                     const Manifest& training) {
  CheckpointOptions options;
  options.folder = folder;
  options.every = bundle.run.checkpoint_steps;
  options.keep = bundle.run.checkpoints_kept;
  options.rank = at.rank;
  options.world = at.world;
  options.last_step = bundle.run.steps;
  options.window = bundle.graph.window;
  options.training = training;
  return options;
}

BundleRun::BundleRun(Seat& seat, const Bundle& bundle, const Arguments& arguments,
                     std::optional<CheckpointReader> resumed, const Manifest& training)
    : seat_(seat),
      bundle_(bundle),
      graph_(&bundle.graph),
      arguments_(arguments),
      rank_(seat.environment().rank),
      resumed_(std::move(resumed)),
      first_(beginning(bundle, resumed_)),
      programs_(bundle, first_),
      now_(first_),
      device_(device_of_rank(seat.environment().local_rank)),
      queue_(queue_of(device_)),
      transports_(seat, bundle.graph, device_, queue_.get()),
      memory_(device_.type()),
      model_(bundle, rank_, device_),
      losses_(bundle, rank_, first_, arguments.out, seat.host().connect(),
              [this](const std::string& where) { seat_.fail_with_current_exception(where); }),
      checkpoints_(checkpoint_options(seat.environment(), bundle, arguments.out, training), model_,
                   seat.host().connect()),
      lanes_(
          programs_.all, rank_, [this](int done) { return next_steps(done); }, hooks()) {
  replay_segments();
  if (resumed_)
    model_.load(*resumed_);
  else if (!arguments.weights.empty())
    model_.load(read_weight_files(arguments.weights));
  resumed_.reset();
  const auto& processes = seat.processes();
  for (int other = 0; other < seat.environment().world; ++other)
    if (!same_clock(processes[other], processes.front())) foreign_.push_back(other);
}

void BundleRun::replay_segments() {
  if (!arguments_.cuda_graphs) return;
  if (const auto refusal = not_recordable(bundle_.graph)) throw std::runtime_error(text_of(*refusal));
  const RankEnvironment& at = seat_.environment();
  if (at.hosted > 1 && at.processes() > 1)  // one rank records at a time, and a replay may wait for another process
    throw std::runtime_error(
        "--cuda-graphs: with several ranks in each of several processes there are none; leave it out");
  capture_ = capture_of(device_);
  if (!capture_)
    throw std::runtime_error("--cuda-graphs: ranks on a processor have none; leave it out, or start slipway-rank-cuda");
  const std::string why_none = model_.replay_segments(*capture_);
  if (why_none.empty() || rank_ != 0) return;
  std::printf("no segment is recorded as a CUDA graph: %s\n", why_none.c_str());
  std::fflush(stdout);
}

// While lanes run, an exception must not wait for other lanes to end, which may hang because their peers are gone. The
// heartbeat notifies the other ranks at once.
LaneHooks BundleRun::hooks() {
  LaneHooks hooks;
  hooks.device = queue_.get();
  hooks.steps_before = first_.steps;
  hooks.perform = [this](TaskId task, int step) { memory_.measure(task, step, [&] { perform(task, step); }); };
  hooks.lane_broke = [this](const std::string& where) { seat_.fail_with_current_exception(where); };
  hooks.thread_begins = [this](bool computes) {
    at::set_num_threads(arguments_.threads);
    if (computes) {
      const Turns::Turn turn = turn_to_start(0);
      warm_up(device_, bundle_.graph.step.dtype, uses_kfac(bundle_.graph.step));
    }
    memory_.count_this_thread();
  };
  hooks.step_ends = [this](int step, const std::vector<Nanoseconds>& ends) { step_ended(step, ends); };
  hooks.pauses_after = [this](int step) {
    return checkpoints_.is_due(
        std::min<std::int64_t>(first_.steps + (step + 1) * bundle_.graph.window, bundle_.run.steps));
  };
  return hooks;
}

void BundleRun::align_clocks(const std::string& round) {
  const std::vector<ClockSample> samples = exchange_clocks(seat_.store(), round, rank_, foreign_);
  const std::lock_guard lock(clock_mutex_);
  clock_.insert(clock_.end(), samples.begin(), samples.end());
}

void BundleRun::agree_on_origin() {
  if (rank_ == 0) seat_.store().set("origin", std::to_string(monotonic_ns()));
  origin_ = std::stoll(seat_.store().get("origin", while_alive_s));
  losses_.begin(origin_);
}

// The number of first steps of a program that may load kernels or allocate memory: those that do something for the
// first time, and those that record CUDA graphs. 0 where no message on a device waits for another process.
int BundleRun::first_steps() const {
  if (!queue_ || seat_.environment().processes() == 1) return 0;
  return SegmentReplay::eager_steps + (capture_ ? 1 : 0);
}

bool BundleRun::may_load(int step) const { return step < first_of_program_ + first_steps(); }

Turns::Turn BundleRun::turn_to_start(int step) {
  return may_load(step) ? seat_.turns().take(TurnOf::starts) : Turns::Turn{};
}

// Inside a process a message is a few copies, which are started; its members wait for each other on the host.
void BundleRun::move_first(TaskId task, Message& message) {
  transports_.meet(*graph_, task);
  const bool leaves = transports_.leaves_process(*graph_, task);
  const Turns::Turn turn = seat_.turns().take(leaves ? TurnOf::messages : TurnOf::starts);
  transports_.move(*graph_, task, message);
  if (leaves) finish_work(device_);
}

void BundleRun::perform(TaskId task, int step) {
  if (graph_->tasks[task].communicator == none) {
    const Turns::Turn turn = turn_to_start(step);
    return model_.run(task, step);
  }
  Message message = [&] {
    const Turns::Turn turn = turn_to_start(step);
    return model_.message(task, step);
  }();
  if (may_load(step))
    move_first(task, message);
  else
    transports_.move(*graph_, task, message);
  const Turns::Turn turn = turn_to_start(step);
  model_.arrived(task, step, std::move(message));
}

// The steps of a window end together; of the last window not all may run. A checkpoint that cannot be written ends the
// run. The heartbeat then notifies the other ranks, which wait in their lanes.
void BundleRun::step_ended(int step, const std::vector<Nanoseconds>& ends) {
  int of_training = step * static_cast<int>(ends.size());
  for (const Nanoseconds& end : ends) {
    if (now_.steps == bundle_.run.steps) break;
    const std::optional<GradientNorms> norms = model_.take_norms(of_training);
    const std::optional<double> square = model_.take_gradient_square(of_training);
    const auto held_out = &end == &ends.back() ? model_.take_evaluation(step) : std::nullopt;
    losses_.step_ended({now_, now_.batch, model_.take_loss(of_training++), end, norms, square, held_out});
    now_ = agreed({now_.steps + 1, now_.samples + now_.batch, now_.batch}, norms);
  }
  model_.check(step);
  try {
    checkpoints_.step_ended(now_);
  } catch (...) {
    seat_.fail_with_current_exception("checkpoint of step " + std::to_string(now_.steps));
  }
}

// Progress with the batch of the next step. For the norm test rank 0's result decides; the others would get the same.
Progress BundleRun::agreed(Progress done, const std::optional<GradientNorms>& norms) {
  const auto key = [this](std::int64_t steps) { return "batch/" + std::to_string(steps); };
  const bool asks = grows(bundle_) && is_tested(bundle_, done);
  if (!asks || rank_ == 0) done.batch = batch_after(bundle_, done, norms);
  if (!asks) return done;
  if (rank_ != 0) {
    done.batch = std::stoll(seat_.store().get(key(done.steps), while_alive_s));
    return done;
  }
  seat_.store().set(key(done.steps), std::to_string(done.batch));
  // Every rank has read the one before, because it took part in the norms since.
  if (done.steps > bundle_.batches.test_every) seat_.store().forget(key(done.steps - bundle_.batches.test_every));
  return done;
}

// No lane of this rank is at work. Around the first steps of a program all ranks meet: ranks that share a device must
// have no message of other steps there.
StepSpan BundleRun::next_steps(int done) {
  StepSpan span = span_from(bundle_, now_);
  if (span.steps == 0) return span;
  const auto all_meet = [&] {
    if (first_steps() > 0 && done > 0)
      store_barrier(seat_.store(), "step/" + std::to_string(done), seat_.environment().world, while_alive_s);
  };
  const TaskGraph* graph = programs_.all[span.program];
  if (graph != graph_) {
    all_meet();
    graph_ = graph;
    first_of_program_ = done;
    model_.enter(*graph, now_, done);
  }
  if (first_steps() == 0) return span;
  const int left = first_of_program_ + first_steps() - done;
  if (left == first_steps()) transports_.begin_meetings();
  if (left == 0) {
    all_meet();
    transports_.end_meetings();
  }
  if (left > 0) span.steps = std::min(span.steps, left);
  return span;
}

void BundleRun::write() const {
  std::unique_lock lock(clock_mutex_);
  const std::vector<ClockSample> clock = clock_;
  lock.unlock();
  write_records(arguments_.out, rank_, records_of(rank_, lanes_.stamps(), memory_.stamps(), clock, origin_));
}

// Runs after a failure, which may be a disk that a checkpoint has filled. The rank that could not save its part makes
// room, for the others too.
void BundleRun::write_what_is_left() const {
  constexpr double patience_s = 2;
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(patience_s);
  checkpoints_.make_room();
  for (;;) {
    try {
      return write();
    } catch (const std::runtime_error&) {
      if (std::chrono::steady_clock::now() > until) throw;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

void BundleRun::run_lanes() {
  std::optional<TransportWatch> watch;
  if (queue_) watch.emplace(transports_.all(), transports_.names(), [this] { seat_.fail_with_current_exception(""); });
  lanes_.run();
}

void BundleRun::run() {
  if (arguments_.dump_step > first_.steps)
    model_.dump_gradients_of_step(arguments_.dump_step - 1 - static_cast<int>(first_.steps), arguments_.out);
  if (rank_ == 0) remove_partial_checkpoints(arguments_.out);
  transports_.connect();
  align_clocks("before");
  store_barrier(seat_.store(), "ready", seat_.environment().world, while_alive_s);
  model_.print_notes();
  agree_on_origin();
  seat_.on_failure([this] { write_what_is_left(); });
  finish_work(device_);  // the model is drawn before lanes read it
  run_lanes();
  losses_.finish();
  store_barrier(seat_.store(), "ran", seat_.environment().world, while_alive_s);
  align_clocks("after");
  seat_.on_failure(nullptr);
  write();
  transports_.shutdown();
}

}  // namespace

void run_bundle(Seat& seat, const Bundle& bundle, const Arguments& arguments) {
  at::set_num_threads(arguments.threads);  // per thread
  std::optional<CheckpointReader> resumed = checkpoint_of(seat, arguments);
  const Manifest training = identity_of(bundle, resumed);
  // A launcher that starts a run again after a failure may do so after its last step.
  if (arguments.resume == resume_if_any && resumed && resumed->manifest().step == bundle.run.steps) {
    if (seat.environment().rank == 0) std::printf("its %d steps are done\n", bundle.run.steps);
    return;
  }
  BundleRun run(seat, bundle, arguments, std::move(resumed), training);
  try {
    run.run();
  } catch (...) {
    // Not in a caller's handler: `run` must outlive the flush, which the heartbeat may call until the end.
    seat.fail_with_current_exception("");
  }
}

}  // namespace slipway::exec
