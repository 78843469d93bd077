// Words of published tables that mean the same thing: "every_layer", "every-layer" and "full (use_checkpoint=true)" are
// all full recomputation. Whatever is no known word is an error that lists what is: nothing is guessed.
// Guarded by tests/table_words_test.cpp.
#pragma once

#include "models/sharding.h"
#include "scenarios/tables/cells.h"

namespace slipway {

// Lower case, dashes as underscores, without blanks.
std::string joined_words(std::string word);
// The same, up to the first blank or parenthesis.
std::string plain_word(const std::string& written);
// none, selective, full (every_layer); `otherwise` where the table has no such column or leaves it empty.
Recompute recompute_word(const Cells& cells, Recompute otherwise);

}  // namespace slipway
