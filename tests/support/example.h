// The scenarios of scenarios/examples.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "scenarios/language/scenario.h"
#include "scenarios/predict/load_scenario.h"

namespace slipway::test {

inline const std::string examples = SLIPWAY_SOURCE_DIR "/scenarios/examples/";

inline scenarios::Scenario loaded(const std::string& name, const std::vector<std::string>& overrides = {}) {
  scenarios::LoadResult result = scenarios::load_scenario(examples + name, overrides);
  EXPECT_TRUE(result.errors.empty()) << describe(result.errors);
  return std::move(result.scenario);
}

}  // namespace slipway::test
