// A table of published runs: each row that is read can be named and written again.
#include <sstream>

#include "scenarios/laboratory/tables/table.h"
#include "tests/fuzz/seed_files.h"
#include "tests/fuzz/target.h"

namespace slipway::test {
namespace {

void try_input(std::string_view input) {
  std::istringstream in{std::string(input)};
  const scenarios::PublishedTable table = scenarios::read_table(in, "t.csv");
  for (const scenarios::PublishedRow& row : table.rows) {
    scenarios::in_words(row);
    if (row.scenario) scenarios::layout_key(row);
    scenarios::exclusion_of(row);
    promise(scenarios::run_fields(row).size() == scenarios::run_columns().size(), "a row of other columns");
  }
}

std::vector<std::string> seeds() {
  std::vector<std::string> texts;
  for (const auto& path : files_below("scenarios/studies", ".csv")) texts.push_back(first_lines(text_of_file(path), 4));
  return texts;
}

const RegisterTarget target({"table", try_input, seeds});

}  // namespace
}  // namespace slipway::test
