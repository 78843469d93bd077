#include "scenarios/predict/answer_keys.h"

#include <algorithm>

#include "scenarios/predict/readable.h"

namespace slipway::scenarios {

std::string describe(const std::vector<AnswerKey>& keys) {
  std::size_t name = 0, unit = 0;
  for (const AnswerKey& key : keys) {
    name = std::max(name, key.name.size());
    unit = std::max(unit, display_width(key.unit));
  }
  std::string text;
  for (const AnswerKey& key : keys) {
    text += "  " + key.name + std::string(name + 2 - key.name.size(), ' ');
    text += key.unit + std::string(unit + 2 - display_width(key.unit), ' ');
    text += key.meaning + '\n';
  }
  return text;
}

std::string describe(const std::vector<AnswerKeys>& answers) {
  std::string text;
  for (const AnswerKeys& answer : answers)
    text += (text.empty() ? "" : "\n") + ("slipway " + answer.command + '\n') + describe(answer.keys);
  return text;
}

}  // namespace slipway::scenarios
