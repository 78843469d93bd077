// The scenarios of PipeFisher, loaded and planned, for tests.
#pragma once

#include <gtest/gtest.h>

#include "scenarios/predict/load_scenario.h"
#include "scenarios/predict/prepared_step.h"

namespace slipway::test {

inline Scenario pipefisher_scenario(const std::string& name, const std::vector<std::string>& overrides = {}) {
  LoadResult loaded =
      load_scenario(SLIPWAY_SOURCE_DIR "/scenarios/studies/pipefisher-2022/" + name + ".yaml", overrides);
  EXPECT_TRUE(loaded.errors.empty()) << describe(loaded.errors);
  return std::move(loaded.scenario);
}

}  // namespace slipway::test
