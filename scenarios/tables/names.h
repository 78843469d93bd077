// Words of published tables that mean the same thing: "every_layer", "every-layer" and "full (use_checkpoint=true)" are
// all full recomputation. Whatever is no known word is an error that lists what is: nothing is guessed.
// Guarded by tests/scenarios/tables_test.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/model/sharding.h"
#include "scenarios/tables/csv.h"
#include "scenarios/tables/published_row.h"

namespace slipway::scenarios {

// Lower case, dashes as underscores, without blanks.
std::string joined_words(std::string word);
// The same, up to the first blank or parenthesis.
std::string plain_word(const std::string& written);
// none, selective, full (every_layer); `otherwise` where the table has no such column or leaves it empty.
Recompute recompute_word(const Cells& cells, Recompute otherwise);

// Names of GPUs in tables as names of machine profiles: "A100-80GB SXM", "a100_80gb" and "A100 SXM4 80 GB"
// are all a100-80gb. The generation decides, then the gigabytes; "A100" alone is what the table's authors
// had.
// Guarded by tests/scenarios/tables_test.cpp.

// `usual`: the profiles that names without gigabytes mean where there are several, one of a generation (none: an
// error). Throws CellError with the column when no profile is meant.
std::string machine_named(std::string_view column, const std::string& written,
                          const std::vector<std::string>& usual = {});
// Of column `gpu`, with a word in `assumed` where one of the usual ones was taken.
void set_machine(PublishedRow& row, const Cells& cells, const std::vector<std::string>& usual);

}  // namespace slipway::scenarios
