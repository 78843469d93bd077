// Names of GPUs in tables as names of machine profiles: "A100-80GB SXM", "a100_80gb" and "A100 SXM4 80 GB"
// are all a100-80gb. The generation decides, then the gigabytes; "A100" alone is what the table's authors
// had.
// Guarded by tests/tables_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "scenarios/tables/cells.h"
#include "scenarios/tables/published_row.h"
#include <string_view>

namespace slipway {

// `usual`: the profiles that names without gigabytes mean where there are several, one of a generation (none: an
// error). Throws CellError with the column when no profile is meant.
std::string machine_named(std::string_view column, const std::string& written,
                          const std::vector<std::string>& usual = {});
// Of column `gpu`, with a word in `assumed` where one of the usual ones was taken.
void set_machine(PublishedRow& row, const Cells& cells, const std::vector<std::string>& usual);

}  // namespace slipway
