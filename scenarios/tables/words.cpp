#include "scenarios/tables/words.h"

#include <algorithm>
#include <cctype>

namespace slipway {

std::string joined_words(std::string word) {
  std::erase(word, ' ');
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return c == '-' ? '_' : static_cast<char>(std::tolower(c)); });
  return word;
}

std::string plain_word(const std::string& written) { return joined_words(written.substr(0, written.find_first_of(" ("))); }

Recompute recompute_word(const Cells& cells, Recompute otherwise) {
  if (cells.empty("recompute")) return otherwise;
  return cells.choice<Recompute>("recompute", plain_word(cells.text("recompute")),
                                 {{"none", Recompute::none},
                                  {"selective", Recompute::selective},
                                  {"full", Recompute::full},
                                  {"every_layer", Recompute::full}});
}

}  // namespace slipway
