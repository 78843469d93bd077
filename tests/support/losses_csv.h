// losses.csv of a run folder.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "exec/run/run_files.h"
#include "tests/support/rank_processes.h"

namespace slipway::test {

inline std::string losses_of(const std::string& folder) { return text_of_file(losses_csv_path(folder)); }

// Its third column.
inline std::vector<double> numbers_of(const std::string& csv) {
  std::vector<double> losses;
  std::istringstream lines(csv);
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) losses.push_back(std::stod(line.substr(line.find(',', line.find(',') + 1) + 1)));
  return losses;
}

}  // namespace slipway::test
