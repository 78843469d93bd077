// The study folders: their scenarios load, and the findings in their READMEs are what the commands print.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "scenarios/language/scenario.h"
#include "scenarios/tables/table.h"
#include "scenarios/validate/levers.h"
#include "tests/support/command_test.h"
#include "tests/support/printed.h"

namespace slipway::test {
namespace {

const std::string root = SLIPWAY_SOURCE_DIR;

std::string answer_of(const std::string& command) {
  const Printed printed = printed_by(command);
  EXPECT_EQ(printed.status, 0) << command;
  return printed.text;
}

class Studies : public CommandTest {};

TEST_F(Studies, EveryScenarioOfAStudyLoads) {
  int scenarios = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root + "/scenarios")) {
    const std::string path = entry.path().string();
    const bool study = std::filesystem::exists(entry.path().parent_path() / "runs.csv");
    if (!study || entry.path().extension() != ".yaml") continue;
    const LoadResult result = load_scenario(path, {});
    EXPECT_TRUE(result.errors.empty()) << path << ": " << describe(result.errors);
    ++scenarios;
  }
  EXPECT_GE(scenarios, 5);
}

// "<!-- findings -->", then a block with findings.awk's output for these rows.
TEST_F(Studies, FindingsInTheReadmesAreWhatTheCommandsPrint) {
  for (const std::string study : {"hagemann-2023", "fujii-2024"}) {
    const std::string folder = root + "/scenarios/studies/" + study, text = text_of(folder + "/README.md");
    const std::string mark = "<!-- findings -->\n```\n";
    const std::size_t begin = text.find(mark);
    ASSERT_NE(begin, std::string::npos) << study;
    const std::string block = text.substr(begin + mark.size());
    EXPECT_EQ(block.find(mark), std::string::npos) << study << " has one such block";
    const Answer answer = slipway_with({"validate", folder + "/runs.csv", "--rows", path("rows.csv")});
    ASSERT_EQ(answer.status, status_done) << answer.err;
    EXPECT_EQ(block.substr(0, block.find("```")), answer_of("awk -f " + folder + "/findings.awk " + path("rows.csv")))
        << "write into " << study << "/README.md what the command prints now, and read what changed";
  }
}

// "0.738," as its number and what is around it; nothing for a word without digits.
std::optional<std::pair<double, std::string>> number_in(const std::string& word) {
  const auto first = word.find_first_of("0123456789");
  if (first == std::string::npos) return std::nullopt;
  std::string digits = word.substr(first);
  std::erase(digits, ',');
  std::size_t used = 0;
  const double value = std::stod(digits, &used);
  return std::pair(value, word.substr(0, first) + digits.substr(used));
}

// Equal word by word, numbers within 3 %. A fit to measured kernels leaves some constants hardly determined, and the
// logarithms of C libraries differ in their last bit between processors.
bool alike(const std::string& a, const std::string& b) {
  std::istringstream left(a), right(b);
  std::string one, other;
  while (left >> one) {
    if (!(right >> other)) return false;
    if (one == other) continue;
    const auto x = number_in(one), y = number_in(other);
    constexpr double most = 0.03;
    if (!x || !y || x->second != y->second || std::abs(x->first - y->first) > most * std::abs(y->first)) return false;
  }
  return !(right >> other);
}

// The table in the README that begins with this line.
std::string table_from(const std::string& readme, const std::string& heading) {
  const auto begin = readme.find("\n" + heading + "\n");
  if (begin == std::string::npos) return "";
  return readme.substr(begin + 1, readme.find("\n```", begin + 1) - begin - 1);
}

// The tables that a run.sh prints, each from its heading to the empty line behind it.
std::vector<std::string> tables_in(const std::string& printed) {
  std::vector<std::string> tables;
  std::istringstream lines(printed);
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    const bool is_heading =
        !inside && std::ranges::any_of(std::array{"scenario ", "name ", "topology ", "collectives ", "GPU "},
                                       [&](const char* s) { return line.starts_with(s); });
    if (is_heading)
      tables.emplace_back(line);
    else if (inside && !line.empty())
      tables.back() += "\n" + line;
    inside = is_heading || (inside && !line.empty());
  }
  return tables;
}

// Every table that a study's run.sh prints stands in its README, unchanged; numbers of fits may differ a little.
TEST_F(Studies, TablesInTheReadmesAreWhatRunShPrints) {
  for (const auto& [study, expected] :
       {std::pair{"pipefisher-2022", 2}, std::pair{"schedules", 1}, std::pair{"topologies", 2}, std::pair{"kernels", 5},
        std::pair{"pytorch-h200-2026", 5}}) {
    const std::string folder = root + "/scenarios/studies/" + study, readme = text_of(folder + "/README.md");
    const std::string printed = answer_of("BUILD='" SLIPWAY_BINARY_DIR "' " + folder + "/run.sh");
    const std::vector<std::string> tables = tables_in(printed);
    EXPECT_EQ(tables.size(), static_cast<std::size_t>(expected)) << study;
    for (const std::string& now : tables) {
      const bool is_there = readme.find("\n" + now + "\n```") != std::string::npos;
      bool is_alike = false;  // of the tables with this heading
      if (study == std::string("kernels") || study == std::string("pytorch-h200-2026"))
        for (std::size_t from = 0; !is_alike && from < readme.size();) {
          const std::string stands = table_from(readme.substr(from), now.substr(0, now.find('\n')));
          if (stands.empty()) break;
          is_alike = alike(now, stands);
          from = readme.find(stands, from) + stands.size();
        }
      EXPECT_TRUE(is_there || is_alike) << "write into " << study
                                        << "/README.md what run.sh prints now, and read what changed:\n"
                                        << now;
    }
  }
}

// The pairs follow from a table alone. Predicted values may change; a pair and what was measured may not be left out.
TEST_F(Studies, EveryPairOfLeversStandsInTheReadme) {
  for (const auto& [study, file, expected] :
       {std::tuple{"feature-effects-2026", "runs.csv", 22}, std::tuple{"aws-dispatchers-2026", "runs.csv", 22},
        std::tuple{"torchtitan-narrow-2026", "runs.csv", 11}}) {
    const std::string folder = root + "/scenarios/studies/" + study, readme = text_of(folder + "/README.md");
    const PublishedTable table = read_table_file(folder + "/" + file);
    std::vector<RowResult> results;
    for (const PublishedRow& row : table.rows) results.emplace_back().row = &row;
    const std::vector<LeverPair> pairs = lever_pairs(results);
    EXPECT_EQ(pairs.size(), static_cast<std::size_t>(expected)) << study;
    for (const LeverPair& pair : pairs) {
      const std::string line =
          fmt::format("| {}: {} | {} | {} | {} {} | {:+.1f} % | ", pair.from->row->study, pair.key, pair.before,
                      pair.after, pair.from->row->line, pair.to->row->line, 100 * (pair.measured() - 1));
      EXPECT_NE(readme.find(line), std::string::npos) << study << "/README.md lacks " << line;
    }
  }
}

}  // namespace
}  // namespace slipway::test
