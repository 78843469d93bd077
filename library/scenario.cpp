#include <filesystem>

#include "schedules/check/asked_schedule.h"

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

schedules::ActionLists inside(const ActionLists& lists) {
  schedules::ActionLists inner(lists.size());
  for (std::size_t rank = 0; rank < lists.size(); ++rank)
    for (const Action& action : lists[rank])
      inner[rank].push_back({.pass = inside(action.pass),
                             .stage = action.stage,
                             .micro_batch = action.micro_batch,
                             .with_next = action.with_next});
  return inner;
}

std::shared_ptr<const schedules::Schedule> inside(const Schedule& schedule) {
  if (schedule.name.empty() || !schedule.actions || schedule.chunks < 1)
    throw std::invalid_argument("a schedule needs a name, a function and at least one chunk");
  const auto ask = [actions = schedule.actions](const schedules::ScheduleShape& shape) {
    return inside(actions({shape.pipeline, shape.chunks, shape.micro_batches}));
  };
  return schedules::asked_schedule(schedule.name, schedule.chunks, ask);
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
    changed.of.schedule = inside(schedule);
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
