// Words of published tables with the same meaning: "every_layer", "every-layer" and "full (use_checkpoint=true)" are
// all full recomputation. Nothing is guessed: an unknown word is an error that lists the known ones.
// Guarded by tests/scenarios/tables_test.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/model/sharding.h"
#include "scenarios/tables/csv.h"
#include "scenarios/tables/published_row.h"

namespace slipway::scenarios {

// Lower case, with underscores for dashes and without blanks.
std::string joined_words(std::string word);
// The same up to the first blank or parenthesis.
std::string plain_word(const std::string& written);
// none, selective, full (every_layer). `otherwise` for a missing column or an empty cell.
Recompute recompute_word(const Cells& cells, Recompute otherwise);

// Names of GPUs in tables as names of machine profiles: "A100-80GB SXM", "a100_80gb" and "A100 SXM4 80 GB" are all
// a100-80gb. The generation decides first, then the gigabytes. "A100" alone means the GPU of the table's authors.
// Guarded by tests/scenarios/tables_test.cpp.

// `usual`: for each generation with several profiles, the one for names without gigabytes (none: an error). Throws
// CellError with the column when no profile matches.
std::string machine_named(std::string_view column, const std::string& written,
                          const std::vector<std::string>& usual = {});
// Reads column `gpu`. Adds to `assumed` where one of `usual` was taken.
void set_machine(PublishedRow& row, const Cells& cells, const std::vector<std::string>& usual);

}  // namespace slipway::scenarios
