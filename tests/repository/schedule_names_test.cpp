// Schedules are known by their traits: their names stand in their own files, in data, documents and tests.
#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "schedules/step/action.h"
#include "tests/support/source_tree.h"

namespace slipway::test {
namespace {

const std::set<std::string> product = {"models", "schedules", "sim", "exec", "scenarios"};

bool may_name(const std::string& path) { return path.starts_with("schedules/catalogue/"); }

// As a word of its own: "1f1b" is no part of "interleaved-1f1b".
std::regex any_name() {
  std::string names;
  for (const Schedule& schedule : all_schedules()) names += (names.empty() ? "" : "|") + schedule.name;
  return std::regex("(^|[^A-Za-z0-9_-])(" + names + ")($|[^A-Za-z0-9_-])");
}

TEST(ScheduleNames, StandInNoCodeOutsideTheCatalogue) {
  const std::regex name = any_name();
  int files = 0;
  for (const SourceFile& file : source_tree()) {
    const bool is_code = file.path.ends_with(".h") || file.path.ends_with(".cpp");
    if (!is_code || !product.contains(top_folder(file.path)) || may_name(file.path)) continue;
    ++files;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      const std::string code = file.lines[i].substr(0, file.lines[i].find("//"));
      EXPECT_FALSE(std::regex_search(code, name))
          << file.path << ":" << i + 1 << ": " << code << "\nask for a trait (schedules/step/action.h)";
    }
  }
  EXPECT_GT(files, 600);
}

TEST(ScheduleNames, AreFoundWhereTheyStand) {
  EXPECT_TRUE(std::regex_search("step.schedule == \"1f1b\"", any_name()));
  EXPECT_TRUE(std::regex_search("\"schedule.name=gpipe\"", any_name()));
  EXPECT_FALSE(std::regex_search("std::vector<int> no_gpipe_here", any_name()));
}

}  // namespace
}  // namespace slipway::test
