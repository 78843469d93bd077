// Input and output of a search: the scenario that it starts from, the winner as a scenario file, a trainer's launch
// arguments, JSON. Guarded by tests/scenarios/plan_command_test.cpp and tests/scenarios/search_test.cpp.
#pragma once

#include <iosfwd>

#include "models/model/names.h"
#include "scenarios/plan/search.h"

namespace slipway::scenarios {

// Loads a scenario for a search. Its layout and schedule may be impossible, because they are searched, unless some of
// their keys are kept. Throws UsageError.
Scenario scenario_to_search(const std::string& path, const std::vector<std::string>& overrides,
                            const std::vector<std::string>& kept);

enum class Trainer : std::uint8_t { megatron, torchtitan };
inline constexpr std::array trainer_names{Named{Trainer::megatron, "megatron"},
                                          Named{Trainer::torchtitan, "torchtitan"}};
// Nothing for nothing; throws UsageError for an unknown name.
std::optional<Trainer> trainer_named(const std::optional<std::string>& name);

struct LaunchArguments {
  std::string version;                      // of the trainer that has these names
  std::vector<std::string> environment;     // "CUDA_DEVICE_MAX_CONNECTIONS=1"
  std::string program;                      // "pretrain_gpt.py"
  std::vector<std::string> arguments;       // each with its value
  std::vector<std::string> refused;         // why the trainer may refuse this layout, or run another one
  std::vector<std::string> refused_anyway;  // why it refuses the arguments with any layout
  std::vector<std::string> missing;         // settings of the scenario that it has no option for, in words
  std::vector<std::string> to_add;          // options that a scenario does not hold, and defaults of slipway
};
LaunchArguments launch_arguments(const Scenario& scenario, Trainer trainer);
// Throws UsageError for a dtype that the trainer does not train in, because no layout changes that.
void refuse_what_trainer_lacks(const Scenario& scenario, Trainer trainer);

struct PlanAnswer {
  const Scenario& scenario;
  const std::vector<std::string>& overrides;
  const SearchResult& result;
  const SearchOptions& options;
  std::optional<Trainer> trainer;
  std::optional<std::string> file;    // file for the winner's scenario
  std::vector<std::string> remedies;  // set if nothing fits (scenarios/plan/remedies.h)
};
// Both write the file. They return the exit status: failed where no layout fits or the search was interrupted.
int print_text(const PlanAnswer& answer, std::ostream& out, std::ostream& err);
int print_json(const PlanAnswer& answer, std::ostream& out, std::ostream& err);

// A scenario file with this layout; relative paths lead from the folder of `file`.
std::string winner_yaml(const Scenario& scenario, const std::vector<std::string>& overrides, const Step& choice,
                        const std::string& file);

}  // namespace slipway::scenarios
