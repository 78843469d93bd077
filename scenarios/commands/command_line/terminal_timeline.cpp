#include "scenarios/commands/command_line/terminal_timeline.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <map>

#include "scenarios/predict/readable.h"

namespace slipway::scenarios {
namespace {

constexpr int most_rows = 16;

struct KindLetter {
  std::string_view kind;
  char letter;
};
constexpr std::array<KindLetter, 13> letters{{{"forward", 'F'},
                                              {"backward", 'B'},
                                              {"input-grad", 'I'},
                                              {"weight-grad", 'W'},
                                              {"recompute", 'R'},
                                              {"optimizer", 'O'},
                                              {"grad-norm", 'N'},
                                              {"worker-norm", 'n'},
                                              {"tied-grad", 'T'},
                                              {"precondition", 'P'},
                                              {"curvature", 'C'},
                                              {"inversion", 'V'},
                                              {"evaluation", 'E'}}};

std::vector<int> ranks_to_show(const Layout& layout, const Representatives& representatives) {
  const int ranks = rank_count(layout);
  std::vector<int> shown;
  for (int rank = 0; rank < ranks && ranks <= most_rows; ++rank)
    if (representative_of(layout, representatives, rank) == rank) shown.push_back(rank);
  for (int stage = 0; shown.size() < most_rows && stage < layout.pipeline && ranks > most_rows; ++stage) {
    shown.push_back(rank_of(layout, {.pipeline = stage}));
  }
  return shown;
}

TimelinePicture empty_picture(const Layout& layout, const Representatives& representatives) {
  TimelinePicture picture;
  picture.ranks = rank_count(layout);
  picture.begin_s = std::numeric_limits<double>::infinity();
  for (const int rank : ranks_to_show(layout, representatives))
    picture.rows.push_back({"rank " + std::to_string(rank), {}});
  return picture;
}

// rank → row; −1: not shown
std::vector<int> rows_of_ranks(const Layout& layout, const Representatives& representatives) {
  std::vector<int> rows(rank_count(layout), -1);
  int next = 0;
  for (const int rank : ranks_to_show(layout, representatives)) rows[rank] = next++;
  return rows;
}

void add_span(TimelinePicture& picture, int row, bool of_step, const TimelineSpan& span) {
  if (of_step) {
    picture.begin_s = std::min(picture.begin_s, span.start_s);
    picture.end_s = std::max(picture.end_s, span.end_s);
  }
  if (row >= 0) picture.rows[row].spans.push_back(span);
}

constexpr char idle = ' ';
using Shares = std::map<char, double>;

// The shares of each column by letter, idle included. The shares of a column add up to one.
std::vector<Shares> shares_of(const TimelineRow& row, double begin_s, double column_s, int columns) {
  std::vector<Shares> shares(columns, Shares{{idle, 1.0}});
  for (const TimelineSpan& span : row.spans) {
    const double from = std::max(0.0, (span.start_s - begin_s) / column_s);
    const double to = std::min(static_cast<double>(columns), (span.end_s - begin_s) / column_s);
    for (int at = static_cast<int>(from); at < columns && at < to; ++at) {
      const double share = std::min(to, at + 1.0) - std::max(from, static_cast<double>(at));
      shares[at][span.letter] += share;
      shares[at][idle] -= share;
    }
  }
  return shares;
}

// One letter per column. A task that a column could not show is credited to the next columns while it goes on.
// So letters take turns in proportion to their time where a column holds many tasks.
std::string columns_of(const TimelineRow& row, double begin_s, double column_s, int columns) {
  std::string text;
  Shares credit;
  for (const Shares& column : shares_of(row, begin_s, column_s, columns)) {
    std::pair<double, char> most{0, idle};
    for (const auto& [letter, share] : column) {
      if (share < 1e-9) {
        credit[letter] = 0;
        continue;
      }
      credit[letter] += share;
      if (credit[letter] > most.first + 1e-9) most = {credit[letter], letter};
    }
    std::erase_if(credit, [&](const auto& entry) { return !column.contains(entry.first); });
    credit[most.second] -= 1;
    text += most.second == idle ? std::string("·") : std::string(1, most.second);
  }
  return text;
}

// COLUMNS, otherwise the terminal's columns; 0 where there is neither. A terminal that says less than 40 gets 40.
int stated_columns() {
  constexpr int narrowest = 40;
  if (const char* columns = std::getenv("COLUMNS")) {
    const int number = std::atoi(columns);
    if (number > 0) return number;
  }
  winsize size{};
  if (::isatty(STDOUT_FILENO) && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return std::max<int>(narrowest, size.ws_col);
  return 0;
}

}  // namespace

char letter_of_kind(std::string_view kind) {
  const auto found = std::find_if(letters.begin(), letters.end(), [&](const KindLetter& l) { return l.kind == kind; });
  return found == letters.end() ? '?' : found->letter;
}

TimelinePicture picture_of(const TaskGraph& graph, const Timeline& timeline, int step) {
  TimelinePicture picture = empty_picture(graph.step.layout, graph.representatives);
  const std::vector<int> rows = rows_of_ranks(graph.step.layout, graph.representatives);
  const std::size_t tasks = graph.tasks.size();
  for (int s = 0; s < timeline.steps; ++s) {
    for (TaskId id = 0; id < tasks; ++id) {
      const Task& task = graph.tasks[id];
      if (task.communicator != none) continue;
      const std::size_t at = static_cast<std::size_t>(s) * tasks + id;
      const int row = rows[task.rank];
      if (row < 0 && s != step) continue;
      add_span(picture, row, s == step, {timeline.start[at], timeline.end[at], letter_of_kind(kind_of(graph, id))});
    }
  }
  return picture;
}

TimelinePicture picture_of(const Trace& trace, const Layout& layout, int step) {
  TimelinePicture picture = empty_picture(layout, {});
  const std::vector<int> rows = rows_of_ranks(layout, {});
  for (const TraceRecord& record : trace.records) {
    if (is_communication(record.kind)) continue;
    add_span(picture, rows.at(record.rank), record.step / trace.window == step / trace.window,
             {record.start_s, record.end_s, letter_of_kind(record.kind)});
  }
  return picture;
}

std::string draw(const TimelinePicture& picture, int width) {
  if (picture.rows.empty() || !(picture.end_s > picture.begin_s)) return "";
  std::size_t names = 0;
  for (const TimelineRow& row : picture.rows) names = std::max(names, row.name.size());
  const int columns = std::max(10, width - static_cast<int>(names) - 3);
  const double column_s = (picture.end_s - picture.begin_s) / columns;
  std::string text, used;
  for (const TimelineRow& row : picture.rows) {
    const std::string cells = columns_of(row, picture.begin_s, column_s, columns);
    used += cells;
    text += row.name + std::string(names - row.name.size(), ' ') + " │" + cells + "│\n";
  }
  text += std::string(names, ' ') + "  one column = " + readable_seconds(column_s);
  for (const KindLetter& entry : letters) {
    if (used.find(entry.letter) != std::string::npos) {
      text += std::string(", ") + entry.letter + " " + std::string(entry.kind);
    }
  }
  text += ", · idle\n";
  const int hidden = picture.ranks - static_cast<int>(picture.rows.size());
  if (hidden > 0) {
    text += std::string(names, ' ') + "  " + counted(hidden, "rank") +
            " not shown: tensor, context and data parallel peers, and those beyond " + std::to_string(most_rows) +
            " rows\n";
  }
  return text;
}

int terminal_width() {
  constexpr int without_terminal = 100;
  const int columns = stated_columns();
  return columns > 0 ? columns : without_terminal;
}

int table_columns() {
  const int columns = stated_columns();
  return columns == 0 && ::isatty(STDOUT_FILENO) ? terminal_width() : columns;
}

}  // namespace slipway::scenarios
