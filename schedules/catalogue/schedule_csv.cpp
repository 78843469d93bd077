#include "schedules/catalogue/schedule_csv.h"

#include <algorithm>
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

constexpr const char* no_action =
    "is not an action; write <stage><pass><micro-batch> with pass F, B, I or W, for example 2F0, or leave the cell "
    "empty";
constexpr const char* no_pair =
    "is not a pair; write (2F1;2B0)OVERLAP_F_B, a forward and a backward (B or I) of different micro-batches, or two "
    "cells";

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

constexpr std::string_view pair_word = "OVERLAP_F_B";

bool is_backward(const Action& action) { return action.pass == Pass::backward || action.pass == Pass::input_grad; }

bool parse_pair(std::string_view cell, std::vector<Action>& list) {
  const auto semicolon = cell.find(';'), close = cell.find(')');
  if (semicolon == std::string_view::npos || close == std::string_view::npos || close < semicolon) return false;
  Action first, second;
  if (!parse_action(trimmed(cell.substr(1, semicolon - 1)), first) ||
      !parse_action(trimmed(cell.substr(semicolon + 1, close - semicolon - 1)), second) ||
      trimmed(cell.substr(close + 1)) != pair_word || !is_pair(first, second))
    return false;
  first.with_next = true;
  list.push_back(first);
  list.push_back(second);
  return true;
}

// A communication cell, and where it stands: before the actions from `at` on.
struct Communication {
  enum class Kind : std::uint8_t { send, receive, unshard, reshard, reduce } kind = Kind::send;
  Action action;  // whose output is sent, or which reads what is received; of the others, the stage alone
  std::size_t at = 0;
  std::string place;
};

bool parse_communication(std::string_view cell, Communication& found) {
  using enum Communication::Kind;
  struct Word {
    std::string_view word;
    Communication::Kind kind;
    Pass pass;
  };
  constexpr std::array<Word, 7> words{{{"SEND_F", send, Pass::forward},
                                       {"RECV_F", receive, Pass::forward},
                                       {"SEND_B", send, Pass::backward},
                                       {"RECV_B", receive, Pass::backward},
                                       {"UNSHARD", unshard, Pass::none},
                                       {"RESHARD", reshard, Pass::none},
                                       {"REDUCE_GRAD", reduce, Pass::none}}};
  if (!take_number(cell, found.action.stage)) return false;
  for (const Word& each : words) {
    if (!cell.starts_with(each.word)) continue;
    cell.remove_prefix(each.word.size());
    found.kind = each.kind;
    found.action.pass = each.pass;
    return each.pass == Pass::none ? cell.empty() : take_number(cell, found.action.micro_batch) && cell.empty();
  }
  return false;
}

// The reason why a communication cell does not fit the passes of its row; empty if it does.
std::string misfit(const Communication& cell, const std::vector<Action>& list) {
  using enum Communication::Kind;
  const auto from = list.begin() + static_cast<std::ptrdiff_t>(cell.at);
  const auto is_its = [&](const Action& each) {
    const bool same_pass = cell.action.pass == Pass::forward ? each.pass == Pass::forward : is_backward(each);
    return each.stage == cell.action.stage && each.micro_batch == cell.action.micro_batch && same_pass;
  };
  const auto ends_gradient = [&](const Action& each) {
    return each.stage == cell.action.stage && (each.pass == Pass::backward || each.pass == Pass::weight_grad);
  };
  if (cell.kind == send && std::none_of(list.begin(), from, is_its))
    return "sends what no pass before it in the row makes; move it behind that pass";
  if (cell.kind == receive && std::none_of(from, list.end(), is_its))
    return "receives what no pass behind it in the row reads; move it before that pass";
  if (cell.kind == reduce && std::none_of(list.begin(), from, ends_gradient))
    return "reduces a gradient that no pass before it in the row makes; move it behind the last backward of the stage";
  if (cell.kind == reduce && std::any_of(from, list.end(), ends_gradient))
    return "reduces a gradient before the last backward of the stage; move it behind that";
  return "";
}

bool is_blank(std::string_view row) { return row.find_first_not_of(" \t\r,") == std::string_view::npos; }

// Rows up to the last one that has a cell.
std::vector<std::string> rows_of(std::istream& in, const std::string& name) {
  std::vector<std::string> rows;
  for (std::string line; std::getline(in, line);) rows.push_back(line);
  if (in.bad()) throw std::invalid_argument(name + ": reading failed after row " + std::to_string(rows.size()));
  if (constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
      !rows.empty() && rows.front().starts_with(byte_order_mark))
    rows.front().erase(0, byte_order_mark.size());  // spreadsheets write one
  while (!rows.empty() && is_blank(rows.back())) rows.pop_back();
  if (rows.empty())
    throw std::invalid_argument(name + ": the file is empty; write one row of actions per pipeline rank");
  return rows;
}

// `row`: the file's name and the row's number.
std::vector<Action> actions_in(std::string_view rest, const std::string& row) {
  if (is_blank(rest))
    throw std::invalid_argument(row + ": the row is empty; write the actions of its pipeline rank, or remove the row");
  std::vector<Action> list;
  std::vector<Communication> communications;
  for (int column = 1;; ++column) {
    const auto comma = rest.find(',');
    const std::string_view cell = trimmed(rest.substr(0, comma));
    const std::string place = row + ": cell " + std::to_string(column) + " '" + std::string(cell) + "' ";
    Communication communication;
    if (Action action; parse_action(cell, action)) {
      list.push_back(action);
    } else if (cell.starts_with('(')) {
      if (!parse_pair(cell, list)) throw std::invalid_argument(place + no_pair);
    } else if (parse_communication(cell, communication)) {
      communication.at = list.size();
      communication.place = place;
      communications.push_back(std::move(communication));
    } else if (!cell.empty()) {
      throw std::invalid_argument(place + no_action);
    }
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  if (list.empty())
    throw std::invalid_argument(
        row + ": the row has communication alone; write the passes of its pipeline rank too, or remove the row");
  for (const Communication& each : communications)
    if (const std::string reason = misfit(each, list); !reason.empty())
      throw std::invalid_argument(each.place + reason);
  return list;
}

}  // namespace

ActionLists read_schedule_csv(std::istream& in, const std::string& name) {
  ActionLists lists;
  for (const std::string& row : rows_of(in, name))
    lists.push_back(actions_in(row, name + ":" + std::to_string(lists.size() + 1)));
  return lists;
}

void write_schedule_csv(std::ostream& out, const ActionLists& lists) {
  for (const auto& list : lists) {
    std::string row, pair;  // pair: what has been written of the cell at hand
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
      if (action.with_next) {
        pair = "(" + cell + ";";
        continue;
      }
      row += (row.empty() ? "" : ",") + (pair.empty() ? cell : pair + cell + ")" + std::string(pair_word));
      pair.clear();
    }
    out << row << '\n';
  }
}

}  // namespace slipway::schedules
