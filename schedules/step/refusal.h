// A mistake of the user, in the words of the scenario. Every rule returns its parts, so that a loader can add file and
// line, and no code has to parse a sentence.
#pragma once

#include <string>

#include "models/namespaces.h"

namespace slipway::schedules {

struct Refusal {
  std::string key;      // to change: "layout.tensor"
  std::string problem;  // what is wrong, with the numbers
  std::string allowed;  // what could stand there instead; may be empty
  std::string remedy;   // what to do
};

// "the problem; allowed: 1, 2, 4"
inline std::string message_of(const Refusal& refusal) {
  return refusal.problem + (refusal.allowed.empty() ? "" : "; allowed: " + refusal.allowed);
}
// "layout.tensor: the problem; allowed: 1, 2, 4; the remedy"
inline std::string text_of(const Refusal& refusal) {
  return refusal.key + ": " + message_of(refusal) + "; " + refusal.remedy;
}

}  // namespace slipway::schedules
