// The answer of `slipway explain` as text and as JSON. Guarded by tests/scenarios/explain_command_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "scenarios/predict/answer_keys.h"
#include "scenarios/predict/description.h"
#include "scenarios/search/explanation.h"

namespace slipway::scenarios {

// The answer in one sentence or two.
std::string answer_of(const Explanation& explanation);
// `most_levers`: rows of the table; JSON has all.
std::string explanation_text(const Explanation& explanation, int most_levers);
const Description<Explanation>& explanation_description();

// The keys of its --json.
std::vector<AnswerKeys> explain_answers();

}  // namespace slipway::scenarios
