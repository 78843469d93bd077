// Scenarios that a caller holds in memory, in place of files: those of a request to `slipway worker`.
//
//   GiveScenario given("scenario.yaml", {.text = "model: ..."});
//   source_of("scenario.yaml", {"layout.tensor=4"})      has that text; every command reads its scenarios so
//
// Guarded by tests/python/worker_test.py.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/language/read_scenario.h"

namespace slipway::scenarios {

struct GivenScenario {
  std::optional<std::string> text = {};           // unset: what the file holds
  std::shared_ptr<const Schedule> schedule = {};  // a caller's; unset: the one that the scenario names
};

// While one lives, `path` means what it holds. Threads may read meanwhile. One at a time.
class GiveScenario {
 public:
  GiveScenario(std::string path, GivenScenario given);
  ~GiveScenario();
  GiveScenario(const GiveScenario&) = delete;
  GiveScenario& operator=(const GiveScenario&) = delete;
};

// The file, or what is given in its place.
ScenarioSource source_of(const std::string& path, const std::vector<std::string>& overrides);

}  // namespace slipway::scenarios
