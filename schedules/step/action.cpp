#include "schedules/step/action.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace slipway::schedules {
namespace {

// Function-local, so that it exists before the first static RegisterSchedule of any file runs.
std::vector<Schedule>& registry() {
  static std::vector<Schedule> schedules;
  return schedules;
}

}  // namespace

std::optional<ShapeRefusal> refuse_slices(const std::string& name, const ScheduleShape& shape) {
  if (shape.slices == 1) return {};
  return ShapeRefusal{name + " does not cut sequences into slices", "set schedule.slices to 1"};
}

bool is_pair(const Action& first, const Action& second) {
  const auto is_backward = [](const Action& a) { return a.pass == Pass::backward || a.pass == Pass::input_grad; };
  const bool one_each =
      (first.pass == Pass::forward && is_backward(second)) || (second.pass == Pass::forward && is_backward(first));
  return one_each && first.micro_batch != second.micro_batch;
}

char letter_of(Pass pass) {
  switch (pass) {
    case Pass::none:
      return '-';
    case Pass::forward:
      return 'F';
    case Pass::backward:
      return 'B';
    case Pass::input_grad:
      return 'I';
    case Pass::weight_grad:
      return 'W';
    case Pass::recompute:
      return 'R';
  }
  return '-';
}

bool splits_backward(const ActionLists& actions) {
  return std::any_of(actions.begin(), actions.end(), [](const auto& list) {
    return std::any_of(list.begin(), list.end(), [](const Action& action) { return action.pass == Pass::weight_grad; });
  });
}

bool has_pairs(const ActionLists& actions) {
  return std::any_of(actions.begin(), actions.end(), [](const auto& list) {
    return std::any_of(list.begin(), list.end(), [](const Action& action) { return action.with_next; });
  });
}

const std::vector<Schedule>& all_schedules() { return registry(); }

const Schedule* schedule_named(std::string_view name) {
  for (const Schedule& schedule : registry()) {
    if (schedule.name == name) return &schedule;
  }
  return nullptr;
}

const Schedule& default_schedule(int chunks) {
  const auto found = [](auto trait) -> const Schedule& {
    const auto at = std::find_if(registry().begin(), registry().end(), trait);
    if (at == registry().end()) throw std::logic_error("the catalogue has no default schedule");
    return *at;
  };
  const Schedule& plain = found([](const Schedule& each) { return each.is_default; });
  return chunks == 1 ? plain : found([&](const Schedule& each) { return each.interleaves == plain.name; });
}

std::string schedules_with(const std::function<bool(const Schedule&)>& trait, std::string_view last) {
  std::vector<std::string_view> names;
  for (const Schedule& schedule : registry())
    if (trait(schedule)) names.push_back(schedule.name);
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? last : ", ";
    text += names[i];
  }
  return text;
}

RegisterSchedule::RegisterSchedule(Schedule schedule) {
  if (schedule_named(schedule.name) != nullptr) {
    throw std::logic_error("two schedules are registered as '" + schedule.name + "'");
  }
  // Static objects of different files run in no fixed order. Sorting on insertion hides this.
  auto& all = registry();
  const auto at = std::lower_bound(all.begin(), all.end(), schedule,
                                   [](const Schedule& a, const Schedule& b) { return a.name < b.name; });
  all.insert(at, std::move(schedule));
}

}  // namespace slipway::schedules
