#include "scenarios/search/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "scenarios/readable.h"
#include "scenarios/validation/prediction.h"

namespace slipway {
namespace {

struct Column {
  std::string name;
  std::vector<std::string> cells;  // per row
  int spared = 0;          // which goes first where the table is too wide: 1 before 2, 0 never
  bool is_choice = true;   // of the layout: goes only if all rows have the same, and is told below
  bool all_same() const {
    return std::all_of(cells.begin(), cells.end(), [&](const std::string& c) { return c == cells.front(); });
  }
};

// "9, 8x3, 7".
std::string runs_of(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t i = 0, end = 0; i < numbers.size(); i = end) {
    for (end = i + 1; end < numbers.size() && numbers[end] == numbers[i];) ++end;
    text += (text.empty() ? "" : ", ") + std::to_string(numbers[i]);
    if (end > i + 1) text += "x" + std::to_string(end - i);
  }
  return text;
}

const char* recompute_name(Recompute recompute) {
  constexpr const char* names[] = {"none", "selective", "full"};
  return names[static_cast<std::size_t>(recompute)];
}

class Table {
 public:
  Table(const Scenario& scenario, const std::vector<PricedLayout>& rows) : rows_(rows) {
    add_choices();
    add("step", 0, [](const PricedLayout& r) { return readable_seconds(r.step_time_s); });
    add("MFU", 13, [](const PricedLayout& r) { return readable_share(r.mfu); });
    const double tokens = tokens_per_step(scenario);
    add("tokens/s", 12, [=](const PricedLayout& r) { return readable_count(tokens / r.step_time_s); });
    if (scenario.tokens > 0)
      add("days", 15, [&](const PricedLayout& r) { return fmt::format("{:.4g}", training_cost(scenario, r.step_time_s)->days); });
    if (scenario.tokens > 0 && scenario.cluster.price_per_gpu_hour > 0)
      add("cost", 14, [&](const PricedLayout& r) { return readable_count(*training_cost(scenario, r.step_time_s)->cost); });
    add("memory", 0, [](const PricedLayout& r) {
      return readable_bytes(r.memory_bytes) + " (" + readable_share(r.memory_share) + ")";
    });
    add("bubble", 10, [](const PricedLayout& r) { return readable_share(r.bubble_share); });
    add("exposed", 11, [](const PricedLayout& r) { return readable_share(r.exposed_comm_share); });
  }

  std::string text(int columns) {
    while (columns > 0 && width() > static_cast<std::size_t>(columns) && spare()) {
    }
    std::string text = drawn();
    if (!common_.empty()) text += "  All of them: " + common_ + ".\n";
    if (!left_out_.empty()) text += "  Left out, being " + std::to_string(columns) + " columns wide: " + left_out_ + ".\n";
    return text + waiting();
  }

 private:
  template <class Cell>
  void add(const char* name, int spared, Cell cell, bool is_choice = false) {
    Column column{name, {}, spared, is_choice};
    for (const PricedLayout& row : rows_) column.cells.push_back(cell(row));
    columns_.push_back(std::move(column));
  }

  void add_choices() {
    const auto choice = [&](const char* name, int spared, auto cell) { add(name, spared, cell, true); };
    const auto degree = [&](const char* name, int spared, int Layout::*value) {
      choice(name, spared, [=](const PricedLayout& r) { return std::to_string(r.choice.layout.*value); });
    };
    choice("tensor", 9, [](const PricedLayout& r) {
      return std::to_string(r.choice.layout.tensor) + (r.choice.layout.sequence_parallel ? " sp" : "");
    });
    degree("pipeline", 8, &Layout::pipeline);
    degree("chunks", 2, &Layout::chunks);
    degree("context", 1, &Layout::context);
    degree("data", 7, &Layout::data);
    choice("batch", 5, [](const PricedLayout& r) { return std::to_string(r.choice.micro_batch); });
    degree("zero", 6, &Layout::zero);
    choice("recompute", 3, [](const PricedLayout& r) { return std::string(recompute_name(r.choice.recompute)); });
    choice("schedule", 4, [](const PricedLayout& r) { return std::string(r.choice.schedule->name); });
    const auto any = [&](std::vector<int> Layout::*list) {
      return std::any_of(rows_.begin(), rows_.end(), [&](const PricedLayout& r) { return !(r.choice.layout.*list).empty(); });
    };
    if (any(&Layout::split_list))
      choice("layers per stage", 0, [](const PricedLayout& r) {
        return r.choice.layout.split_list.empty() ? std::string("even") : runs_of(r.choice.layout.split_list);
      });
  }

  // The next column to do without; false: none.
  bool spare() {
    auto next = columns_.end();
    for (auto at = columns_.begin(); at != columns_.end(); ++at)
      if (at->spared > 0 && (!at->is_choice || at->all_same()) && (next == columns_.end() || at->spared < next->spared))
        next = at;
    if (next == columns_.end()) return false;
    std::string& told = next->is_choice ? common_ : left_out_;
    told += (told.empty() ? "" : ", ") + next->name + (next->is_choice ? " " + next->cells.front() : "");
    columns_.erase(next);
    return true;
  }

  std::string drawn() const {
    std::vector<std::vector<std::string>> cells(rows_.size() + 1);
    cells[0].emplace_back("#");
    for (std::size_t i = 0; i < rows_.size(); ++i) cells[i + 1].push_back(std::to_string(i + 1));
    for (const Column& column : columns_) {
      cells[0].push_back(column.name);
      for (std::size_t i = 0; i < rows_.size(); ++i) cells[i + 1].push_back(column.cells[i]);
    }
    return aligned_table(cells, "  ");
  }

  std::size_t width() const {
    std::istringstream lines(drawn());
    std::size_t most = 0;
    for (std::string line; std::getline(lines, line);) most = std::max(most, display_width(line));
    return most;
  }

  std::string waiting() const {
    const bool shown = std::any_of(columns_.begin(), columns_.end(), [](const Column& c) { return c.name == "bubble"; });
    const bool waits = std::any_of(rows_.begin(), rows_.end(), [](const PricedLayout& r) {
      return r.choice.layout.pipeline == 1 && r.bubble_share > 5e-4;
    });
    return shown && waits ? "  Bubble without a pipeline is waiting for other GPUs.\n" : "";
  }

  const std::vector<PricedLayout>& rows_;
  std::vector<Column> columns_;
  std::string common_, left_out_;
};

}  // namespace

std::string table_of(const Scenario& scenario, const std::vector<PricedLayout>& rows, int columns) {
  return rows.empty() ? "" : Table(scenario, rows).text(columns);
}

}  // namespace slipway
