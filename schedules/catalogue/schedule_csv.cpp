#include "schedules/catalogue/schedule_csv.h"

#include <array>
#include <charconv>
#include <istream>
#include <ostream>
#include <stdexcept>
#include <string_view>

namespace slipway::schedules {
namespace {

constexpr std::array<Pass, 4> csv_passes{Pass::forward, Pass::backward, Pass::input_grad, Pass::weight_grad};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blank = " \t\r";
  const auto first = text.find_first_not_of(blank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

// Removes a non-negative number from the front of `text`; false when there is none.
bool take_number(std::string_view& text, int& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

// PyTorch's names for cells that are no compute action.
bool is_communication_cell(std::string_view cell) {
  for (const std::string_view word : {"SEND", "RECV", "SHARD", "REDUCE_GRAD"}) {
    if (cell.find(word) != std::string_view::npos) return true;
  }
  return false;
}

std::string reason_against(std::string_view cell) {
  if (is_communication_cell(cell)) {
    return "is a communication action, and this reads compute actions only (the task graph adds its own "
           "communication); export the schedule in PyTorch's compute_only format";
  }
  if (cell.find("OVERLAP") != std::string_view::npos) {
    return "is an overlapped forward/backward pair, which is not supported; write its two actions as two "
           "cells";
  }
  return "is not an action; write <stage><pass><micro-batch> with pass F, B, I or W, for example 2F0, or "
         "leave "
         "the cell empty";
}

bool parse_action(std::string_view cell, Action& action) {
  if (!take_number(cell, action.stage) || cell.empty()) return false;
  bool known = false;
  for (const Pass pass : csv_passes) {
    if (letter_of(pass) == cell.front()) {
      action.pass = pass;
      known = true;
    }
  }
  cell.remove_prefix(1);
  return known && take_number(cell, action.micro_batch) && cell.empty();
}

}  // namespace

ActionLists read_schedule_csv(std::istream& in, const std::string& name) {
  ActionLists lists;
  std::string line;
  while (std::getline(in, line)) {
    auto& list = lists.emplace_back();
    std::string_view rest = line;
    if (constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
        lists.size() == 1 && rest.starts_with(byte_order_mark))
      rest.remove_prefix(byte_order_mark.size());  // spreadsheets write one
    for (int column = 1;; ++column) {
      const auto comma = rest.find(',');
      const std::string_view cell = trimmed(rest.substr(0, comma));
      if (Action action; parse_action(cell, action)) {
        list.push_back(action);
      } else if (!cell.empty()) {
        throw std::invalid_argument(name + ":" + std::to_string(lists.size()) + ": cell " + std::to_string(column) +
                                    " '" + std::string(cell) + "' " + reason_against(cell));
      }
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  }
  if (in.bad()) throw std::invalid_argument(name + ": reading failed after row " + std::to_string(lists.size()));
  if (lists.empty()) {
    throw std::invalid_argument(name + ": the file is empty; write one row of actions per pipeline rank");
  }
  return lists;
}

void write_schedule_csv(std::ostream& out, const ActionLists& lists) {
  for (const auto& list : lists) {
    std::string row;
    for (const Action& action : list) {
      const std::string cell =
          std::to_string(action.stage) + letter_of(action.pass) + std::to_string(action.micro_batch);
      if (action.slice != 0) {
        throw std::invalid_argument("PyTorch's schedule CSV has no slices, but " + cell + "/" +
                                    std::to_string(action.slice) + " is one; set schedule.slices to 1");
      }
      if (action.pass == Pass::none || action.pass == Pass::recompute) {
        throw std::invalid_argument("PyTorch's schedule CSV has no word for " + cell +
                                    "; export the schedule without recomputation");
      }
      row += (row.empty() ? "" : ",") + cell;
    }
    out << row << '\n';
  }
}

}  // namespace slipway::schedules
