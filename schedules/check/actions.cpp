#include "schedules/check/actions.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

namespace slipway::schedules {
namespace {

constexpr std::size_t pass_count = 6;
using Occurrences = std::array<std::vector<GridCell>, pass_count>;  // by pass
using Slot = std::tuple<int, int, int>;                             // stage, micro-batch, slice

std::string text_of(const Action& action) {
  return std::to_string(action.stage) + letter_of(action.pass) + std::to_string(action.micro_batch) +
         (action.slice > 0 ? "/" + std::to_string(action.slice) : "");
}

// Numbers that the shape does not have: one defect for all cells of a kind, which follow from one wrong number or key.
class Beyond {
 public:
  explicit Beyond(const ScheduleShape& shape) : shape_(shape) {}

  // False if the action has no such number.
  bool take(const Action& action, GridCell cell) {
    for (Kind& kind : kinds_) {
      if (action.*kind.number >= 0 && action.*kind.number < kind.count) continue;
      if (kind.cells.empty()) kind.first = text_of(action);
      kind.cells.push_back(cell);
      return true;
    }
    return false;
  }
  void report(std::vector<ActionDefect>& defects) {
    for (Kind& kind : kinds_) {
      if (kind.cells.empty()) continue;
      const std::size_t others = kind.cells.size() - 1;
      const std::string who =
          others == 0 ? " has"
                      : " and " + std::to_string(others) + (others == 1 ? " other action have" : " others have");
      defects.push_back({kind.first + who + " a " + kind.name + " that is not among 0 to " +
                             std::to_string(kind.count - 1) + "; " + kind.remedy,
                         std::move(kind.cells),
                         {}});
    }
  }

 private:
  struct Kind {
    const char *name, *remedy;
    int Action::*number;
    int count;
    std::string first = {};
    std::vector<GridCell> cells = {};
  };
  const ScheduleShape& shape_;
  std::array<Kind, 3> kinds_{
      {{"stage", "correct it, or set layout.pipeline and layout.chunks", &Action::stage, shape_.stages()},
       {"micro-batch", "correct it, or set schedule.global_batch or schedule.micro_batch", &Action::micro_batch,
        shape_.micro_batches},
       {"slice", "correct it, or set schedule.slices", &Action::slice, shape_.slices}}};
};

bool is_on_another_row(const Action& action, GridCell cell, const Placement& placement,
                       std::vector<ActionDefect>& defects) {
  const int row = placement.rank[action.stage];
  if (row == cell.row) return false;
  defects.push_back({text_of(action) + " stands in the row of rank " + std::to_string(cell.row) +
                         ", but most of stage " + std::to_string(action.stage) + " is in that of rank " +
                         std::to_string(row) + "; move it there",
                     {cell},
                     {}});
  return true;
}

std::map<Slot, Occurrences> collect(const ActionLists& lists, const ScheduleShape& shape, const Placement& placement,
                                    std::vector<ActionDefect>& defects) {
  std::map<Slot, Occurrences> found;
  Beyond beyond(shape);
  for (std::size_t row = 0; row < lists.size(); ++row) {
    for (std::size_t i = 0; i < lists[row].size(); ++i) {
      const Action& action = lists[row][i];
      const GridCell cell{static_cast<int>(row), static_cast<int>(i)};
      if (beyond.take(action, cell) || is_on_another_row(action, cell, placement, defects)) continue;
      found[{action.stage, action.micro_batch, action.slice}][static_cast<std::size_t>(action.pass)].push_back(cell);
    }
  }
  beyond.report(defects);
  return found;
}

// One (stage, micro-batch, slice) has every pass the right number of times, in the right order.
class SlotCheck {
 public:
  SlotCheck(const Slot& slot, const Occurrences& cells, int row, std::vector<ActionDefect>& defects)
      : slot_(slot), cells_(cells), row_(row), defects_(defects) {}

  void run() {
    for (std::size_t p = 0; p < pass_count; ++p) {
      if (cells_[p].size() > 1) {
        add("appears " + std::to_string(cells_[p].size()) + " times; keep one", static_cast<Pass>(p), cells_[p]);
      }
    }
    if (at(Pass::forward).empty()) missing("has no forward; add ", Pass::forward);
    const bool split = !at(Pass::input_grad).empty() || !at(Pass::weight_grad).empty();
    if (split && !at(Pass::backward).empty()) {
      add("is a full backward beside a split one; keep either B or I and W", Pass::backward, at(Pass::backward));
    } else if (!split && at(Pass::backward).empty()) {
      missing("has no backward; add it (or I and W), ", Pass::backward);
    } else if (split) {
      if (at(Pass::input_grad).empty()) missing("has a weight gradient but no input gradient; add ", Pass::input_grad);
      if (at(Pass::weight_grad).empty())
        missing("has an input gradient but no weight gradient; add ", Pass::weight_grad);
    }
    in_order(Pass::forward, Pass::backward);
    in_order(Pass::forward, Pass::input_grad);
    in_order(Pass::input_grad, Pass::weight_grad);
  }

 private:
  const std::vector<GridCell>& at(Pass pass) const { return cells_[static_cast<std::size_t>(pass)]; }
  Action action(Pass pass) const { return {pass, std::get<0>(slot_), std::get<1>(slot_), std::get<2>(slot_)}; }

  void add(const std::string& what, Pass pass, std::vector<GridCell> culprits) {
    defects_.push_back({text_of(action(pass)) + " " + what, std::move(culprits), {}});
  }
  void missing(const std::string& what, Pass pass) {
    defects_.push_back({"micro-batch " + std::to_string(std::get<1>(slot_)) + " of stage " +
                            std::to_string(std::get<0>(slot_)) + " " + what + text_of(action(pass)) +
                            " to the row of rank " + std::to_string(row_),
                        {},
                        {{row_, action(pass)}}});
  }
  void in_order(Pass first, Pass second) {
    if (at(first).empty() || at(second).empty()) return;
    const GridCell a = at(first).front(), b = at(second).front();
    if (a.index > b.index) add("stands before " + text_of(action(first)) + "; swap them", second, {b, a});
  }

  Slot slot_;
  const Occurrences& cells_;
  int row_;
  std::vector<ActionDefect>& defects_;
};

// Pairs are a forward and a backward of different micro-batches, of two actions each.
void check_pairs(const ActionLists& lists, std::vector<ActionDefect>& defects) {
  for (std::size_t row = 0; row < lists.size(); ++row) {
    const auto& list = lists[row];
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (!list[i].with_next) continue;
      const GridCell cell{static_cast<int>(row), static_cast<int>(i)};
      const bool ends = i + 1 == list.size() || list[i + 1].with_next;
      const Action& a = list[i];
      if (!ends && is_pair(a, list[i + 1])) continue;
      defects.push_back({text_of(a) +
                             " is no pair with the action behind it; a pair is a forward and a backward (B or I) "
                             "of different micro-batches",
                         {cell},
                         {}});
    }
  }
}

// The copy of the model that each micro-batch goes through: the one with most of its actions.
std::vector<int> copies_of_micro_batches(const std::map<Slot, Occurrences>& found, const Placement& placement,
                                         const ScheduleShape& shape) {
  const auto copies = static_cast<std::size_t>(shape.copies);
  std::vector<std::size_t> count(static_cast<std::size_t>(shape.micro_batches) * copies, 0);
  for (const auto& [slot, cells] : found) {
    const auto copy = static_cast<std::size_t>(placement.copy_of(std::get<0>(slot)));
    for (const auto& of_pass : cells)
      count[static_cast<std::size_t>(std::get<1>(slot)) * copies + copy] += of_pass.size();
  }
  std::vector<int> most;
  for (auto first = count.begin(); first != count.end(); first += shape.copies)
    most.push_back(static_cast<int>(std::max_element(first, first + shape.copies) - first));
  return most;
}

void in_another_copy(const Occurrences& cells, int stage, int micro_batch, std::vector<ActionDefect>& defects) {
  std::vector<GridCell> culprits;
  for (const auto& of_pass : cells) culprits.insert(culprits.end(), of_pass.begin(), of_pass.end());
  defects.push_back({"micro-batch " + std::to_string(micro_batch) + " is on stage " + std::to_string(stage) +
                         ", but most of it goes through another copy of the model; keep it in one copy",
                     std::move(culprits),
                     {}});
}

// Complete lists can still wait for each other in a circle.
void check_deadlock(const ActionLists& lists, int parts, std::vector<ActionDefect>& defects) {
  UnitTimes times = unit_times(lists, parts);
  if (times.stuck.empty()) return;
  std::string heads;
  for (const GridCell& cell : times.stuck) {
    const Action& action = lists[cell.row][cell.index];
    heads += (heads.empty() ? "" : ", ") + text_of(action) + " on rank " + std::to_string(cell.row);
  }
  defects.push_back({"the rows wait for each other in a circle at " + heads +
                         "; an action must not stand before one that it needs through another row",
                     std::move(times.stuck),
                     {}});
}

}  // namespace

std::vector<ActionDefect> check_actions(const ActionLists& lists, const ScheduleShape& shape) {
  std::vector<ActionDefect> defects;
  if (static_cast<int>(lists.size()) != shape.pipeline) {
    defects.push_back({"the schedule has " + std::to_string(lists.size()) + " rows, but layout.pipeline is " +
                           std::to_string(shape.pipeline) + "; there is one row per pipeline rank, from rank 0 down",
                       {},
                       {}});
    return defects;
  }
  const Placement placement = placement_of(lists, shape);
  const auto found = collect(lists, shape, placement, defects);
  check_pairs(lists, defects);
  if (!defects.empty()) return defects;  // each defect would make another action look missing
  const std::vector<int> copy_of = copies_of_micro_batches(found, placement, shape);
  const Occurrences nothing;
  for (int stage = 0; stage < shape.stages(); ++stage) {
    for (int m = 0; m < shape.micro_batches; ++m) {
      const bool runs_here = placement.copy_of(stage) == copy_of[m];
      for (int slice = 0; slice < shape.slices; ++slice) {
        const Slot slot{stage, m, slice};
        const auto cells = found.find(slot);
        const int row = placement.rank[stage];
        if (runs_here) {
          SlotCheck(slot, cells == found.end() ? nothing : cells->second, row, defects).run();
        } else if (cells != found.end()) {
          in_another_copy(cells->second, stage, m, defects);
        }
      }
    }
  }
  if (defects.empty()) check_deadlock(lists, placement.parts(), defects);
  return defects;
}

std::string describe(const ActionLists& lists, const ActionDefect& defect, int parts) {
  return defect.message + "\n" + grid(lists, defect.culprits, defect.missing, parts);
}

}  // namespace slipway::schedules
