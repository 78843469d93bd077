// The answer of a search: the winner as a scenario file, a trainer's launch arguments, text, JSON. Guarded by tests/scenarios/plan_command_test.cpp and tests/scenarios/search_test.cpp.
#pragma once

#include <iosfwd>

#include "scenarios/predict/answer_keys.h"
#include "scenarios/search/search.h"
#include "scenarios/trainers/launch.h"

namespace slipway::scenarios {

// The dictionary that --emit names. nullptr for nothing; throws UsageError for an unknown name.
const Dictionary* emitted(const std::optional<std::string>& name);
// The launch arguments of a scenario, in the version that its cluster.trainer names.
LaunchArguments launch_arguments(const Scenario& scenario, const Dictionary& trainer);
// Throws UsageError for a dtype that the trainer does not train in, because no layout changes that.
void refuse_what_trainer_lacks(const Scenario& scenario, const Dictionary& trainer);

struct PlanAnswer {
  const Scenario& scenario;
  const std::vector<std::string>& overrides;
  const SearchResult& result;
  const SearchOptions& options;
  const Dictionary* trainer;          // --emit; nullptr: no launch arguments
  std::optional<std::string> file;    // file for the winner's scenario
  std::vector<std::string> remedies;  // set if nothing fits (scenarios/search/remedies.h)
};
// Both write the file. They return the exit status: failed where no layout fits or the search was interrupted.
int print_text(const PlanAnswer& answer, std::ostream& out, std::ostream& err);
int print_json(const PlanAnswer& answer, std::ostream& out, std::ostream& err);

// A scenario file with this layout; relative paths lead from the folder of `file`.
std::string winner_yaml(const Scenario& scenario, const std::vector<std::string>& overrides, const Step& choice,
                        const std::string& file);
// The keys of the answer as JSON.
std::vector<AnswerKey> plan_keys();

}  // namespace slipway::scenarios
