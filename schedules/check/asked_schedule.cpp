#include "schedules/check/asked_schedule.h"

#include <pthread.h>

#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <variant>

#include "schedules/check/actions.h"

namespace slipway::schedules {
namespace {

// Callers' functions are called one at a time, and by nobody while a process is forked: a child in which a thread that it
// does not have held the lock would wait for ever. A function may itself ask for a prediction, which forks.
std::recursive_mutex& asking() {
  static std::recursive_mutex mutex;
  [[maybe_unused]] static const int registered =
      pthread_atfork([] { asking().lock(); }, [] { asking().unlock(); }, [] { new (&asking()) std::recursive_mutex; });
  return mutex;
}

class AskedSchedule {
 public:
  AskedSchedule(std::string name, std::function<ActionLists(const ScheduleShape&)> actions)
      : name_(std::move(name)), actions_(std::move(actions)) {}

  std::optional<ShapeRefusal> refuse(const ScheduleShape& shape) {
    const auto* refusal = std::get_if<ShapeRefusal>(&answer_for(shape));
    return refusal != nullptr ? std::optional(*refusal) : std::nullopt;
  }
  ActionLists actions(const ScheduleShape& shape) { return std::get<ActionLists>(answer_for(shape)); }

 private:
  using Answer = std::variant<ActionLists, ShapeRefusal>;

  const Answer& answer_for(const ScheduleShape& shape) {
    const std::scoped_lock guard(asking());
    const std::tuple key{shape.pipeline, shape.chunks, shape.micro_batches, shape.slices, shape.group};
    const auto found = answers_.find(key);
    return found != answers_.end() ? found->second : answers_.emplace(key, ask(shape)).first->second;
  }

  Answer ask(const ScheduleShape& shape) const {
    if (auto refusal = refuse_slices(name_, shape)) return *refusal;
    if (shape.group != 0) return ShapeRefusal{name_ + " has no groups of micro-batches", "unset schedule.group"};
    ActionLists lists;
    try {
      lists = actions_(shape);
    } catch (const std::invalid_argument& error) {
      return ShapeRefusal{name_ + " refuses this shape: " + error.what(), "choose another shape"};
    }
    if (std::ssize(lists) != shape.pipeline)
      return ShapeRefusal{name_ + " gives " + std::to_string(lists.size()) + " lists for " +
                              std::to_string(shape.pipeline) + " pipeline ranks",
                          "give one list of actions for each"};
    const auto found = check_actions(lists, shape);
    if (found.empty()) return lists;
    return ShapeRefusal{name_ + " gives no whole step: " + found.front().message, "correct the function"};
  }

  std::string name_;
  std::function<ActionLists(const ScheduleShape&)> actions_;
  std::map<std::tuple<int, int, int, int, int>, Answer> answers_;
};

}  // namespace

std::shared_ptr<const Schedule> asked_schedule(std::string name, int chunks,
                                               std::function<ActionLists(const ScheduleShape&)> actions) {
  auto schedule = std::make_shared<Schedule>();
  schedule->name = name;
  schedule->summary = "a caller's schedule";
  schedule->default_chunks = chunks;
  const auto own = std::make_shared<AskedSchedule>(std::move(name), std::move(actions));
  schedule->refuse = [own](const ScheduleShape& shape) { return own->refuse(shape); };
  schedule->actions = [own](const ScheduleShape& shape) { return own->actions(shape); };
  return schedule;
}

}  // namespace slipway::schedules
