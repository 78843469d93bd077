// A scenario whose batch grows, for tests of `slipway growth`: eight billion parameters on 64 H100.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/command_test.h"

namespace slipway::test {

inline const std::string llama_8b = SLIPWAY_SOURCE_DIR "/scenarios/examples/llama-8b-64xh100.yaml";

// A constant noise scale, so that closed forms hold. `more` settings go last.
inline std::vector<std::string> asked(std::vector<std::string> more = {}) {
  std::vector<std::string> args{"growth", llama_8b};
  for (const char* setting :
       {"schedule.global_batch=32", "run.tokens=", "training.target_loss=2.5", "training.growth.rule=norm-test",
        "training.growth.largest=512", "training.growth.eta=0.7",
        "training.loss={start: 3, floor: 1, offset: 1000, exponent: 0.5}",
        "training.noise={scale: 2 M, at_loss: 3, exponent: 0}"})
    args.insert(args.end(), {"--set", setting});
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

inline nlohmann::json answered(std::vector<std::string> more = {}) {
  more.push_back("--json");
  const Answer answer = slipway_with(asked(more));
  EXPECT_EQ(answer.status, status_done) << answer.err;
  return answer.status == status_done ? nlohmann::json::parse(answer.out) : nlohmann::json();
}

}  // namespace slipway::test
