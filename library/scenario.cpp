#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <variant>

#include "schedules/check/actions.h"

#include "library/loading.h"
#include "slipway/scenario.h"

namespace slipway {
namespace {

schedules::Pass inside(Pass pass) {
  switch (pass) {
    case Pass::forward:
      return schedules::Pass::forward;
    case Pass::backward:
      return schedules::Pass::backward;
    case Pass::input_grad:
      return schedules::Pass::input_grad;
    case Pass::weight_grad:
      return schedules::Pass::weight_grad;
  }
  throw std::invalid_argument("an action has no pass of slipway::Pass");
}

// A caller's function, asked once for each shape. Its lists are checked before anybody sees them.
class OwnSchedule {
 public:
  explicit OwnSchedule(Schedule schedule) : schedule_(std::move(schedule)) {}

  std::optional<schedules::ShapeRefusal> refuse(const schedules::ScheduleShape& shape) {
    const Answer& answer = answer_for(shape);
    const auto* refusal = std::get_if<schedules::ShapeRefusal>(&answer);
    return refusal != nullptr ? std::optional(*refusal) : std::nullopt;
  }
  schedules::ActionLists actions(const schedules::ScheduleShape& shape) {
    return std::get<schedules::ActionLists>(answer_for(shape));
  }

 private:
  using Answer = std::variant<schedules::ActionLists, schedules::ShapeRefusal>;

  const Answer& answer_for(const schedules::ScheduleShape& shape) {
    const std::scoped_lock guard(held_);
    const std::tuple key{shape.pipeline, shape.chunks, shape.micro_batches, shape.slices, shape.group};
    const auto found = answers_.find(key);
    return found != answers_.end() ? found->second : answers_.emplace(key, ask(shape)).first->second;
  }

  Answer ask(const schedules::ScheduleShape& shape) const {
    if (auto refusal = schedules::refuse_slices(schedule_.name, shape)) return *refusal;
    if (shape.group != 0)
      return schedules::ShapeRefusal{schedule_.name + " has no groups of micro-batches", "unset schedule.group"};
    ActionLists lists;
    try {
      lists = schedule_.actions({shape.pipeline, shape.chunks, shape.micro_batches});
    } catch (const std::invalid_argument& error) {
      return schedules::ShapeRefusal{schedule_.name + " refuses this shape: " + error.what(), "choose another shape"};
    }
    if (std::ssize(lists) != shape.pipeline)
      return schedules::ShapeRefusal{schedule_.name + " gives " + std::to_string(lists.size()) + " lists for " +
                                         std::to_string(shape.pipeline) + " pipeline ranks",
                                     "give one list of actions for each"};
    schedules::ActionLists inner(lists.size());
    for (std::size_t rank = 0; rank < lists.size(); ++rank)
      for (const Action& action : lists[rank])
        inner[rank].push_back({.pass = inside(action.pass),
                               .stage = action.stage,
                               .micro_batch = action.micro_batch,
                               .with_next = action.with_next});
    const auto found = schedules::check_actions(inner, shape);
    if (found.empty()) return inner;
    return schedules::ShapeRefusal{schedule_.name + " gives no whole step: " + found.front().message,
                                   "correct the function"};
  }

  Schedule schedule_;
  std::mutex held_;
  std::map<std::tuple<int, int, int, int, int>, Answer> answers_;
};

std::shared_ptr<const schedules::Schedule> inside(Schedule schedule) {
  if (schedule.name.empty() || !schedule.actions || schedule.chunks < 1)
    throw std::invalid_argument("a schedule needs a name, a function and at least one chunk");
  auto inner = std::make_shared<schedules::Schedule>();
  inner->name = schedule.name;
  inner->summary = "a caller's schedule";
  inner->default_chunks = schedule.chunks;
  const auto own = std::make_shared<OwnSchedule>(std::move(schedule));
  inner->refuse = [own](const schedules::ScheduleShape& shape) { return own->refuse(shape); };
  inner->actions = [own](const schedules::ScheduleShape& shape) { return own->actions(shape); };
  return inner;
}

void add(const Settings& settings, scenarios::ScenarioSource& to) {
  for (const auto& [key, value] : settings) to.overrides.push_back(key + "=" + value);
}

}  // namespace

Scenario::Scenario(std::shared_ptr<const Source> source) : source_(std::move(source)) {}

Scenario Scenario::from_file(const std::string& path) {
  return Scenario(std::make_shared<const Source>(Source{{.path = path}}));
}

Scenario Scenario::from_text(const std::string& yaml, const std::string& path) {
  return Scenario(std::make_shared<const Source>(Source{{.path = path, .text = yaml}}));
}

Scenario Scenario::from_settings(const Settings& settings, const std::string& path) {
  return from_text("{}\n", path).with(settings);
}

Scenario Scenario::with(const Settings& settings) const {
  Source changed = *source_;
  add(settings, changed.of);
  return Scenario(std::make_shared<const Source>(std::move(changed)));
}

Scenario Scenario::with_schedule(Schedule schedule) const {
  return translated([&] {
    Source changed = *source_;
    changed.of.schedule = inside(std::move(schedule));
    return Scenario(std::make_shared<const Source>(std::move(changed)));
  });
}

std::vector<Defect> Scenario::defects() const {
  return translated([&] { return defects_of(scenarios::load_scenario(source_->of).errors); });
}

std::string Scenario::name() const { return std::filesystem::path(source_->of.path).stem().string(); }

std::string Scenario::resolved() const {
  return translated([&] { return loaded(*this).resolved; });
}

}  // namespace slipway
