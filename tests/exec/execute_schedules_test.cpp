// Rank processes over Gloo run every schedule by its name alone, and an imported schedule: all train alike.
// execute_layouts_test.cpp tests that they train like one process.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "schedules/step/action.h"
#include "tests/support/executing_test.h"

namespace slipway::test {
namespace {

const std::string scenarios = SLIPWAY_SOURCE_DIR "/scenarios/";

class ExecuteSchedules : public ExecutingTest {
 protected:
  // The loss of the second step, which depends on the gradients of the first.
  double loss(const std::string& scenario, const std::vector<std::string>& settings) const {
    std::vector<std::string> args{"execute", scenario,    "--json", "--overwrite",
                                  "--out",   path("run"), "--set",  "run.steps=2"};
    for (const std::string& setting : settings) args.insert(args.end(), {"--set", setting});
    const Answer answer = slipway_with(args);
    EXPECT_EQ(answer.status, status_done) << answer.err;
    return answer.status == status_done ? nlohmann::json::parse(answer.out)["last_loss"].get<double>() : 0;
  }
};

// The model of gpt-4x8.yaml, small enough for CPUs, with a schedule given by its name alone.
TEST_F(ExecuteSchedules, AllOfTheCatalogueTrainAlikeOnFourRanks) {
  const std::vector<std::string> small{"model.hidden=32",
                                       "model.ffn=64",
                                       "model.heads=4",
                                       "model.vocab=256",
                                       "model.max_positions=32",
                                       "model.sequence=32",
                                       "cluster.machine=" SLIPWAY_SOURCE_DIR
                                       "/scenarios/examples/machines/cpu-test.yaml",
                                       "run.dtype=float64",
                                       "run.data=" + scenarios + "data/us-founding-documents.txt"};
  double first = 0;
  for (const Schedule& schedule : all_schedules()) {
    std::vector<std::string> settings = small;
    settings.push_back("schedule.name=" + schedule.name);
    const double found = loss(scenarios + "studies/schedules/gpt-4x8.yaml", settings);
    if (first == 0) first = found;
    EXPECT_NEAR(found, first, 1e-9 * first) << schedule.name;
  }
  EXPECT_GT(first, 1);
}

// Split and whole backwards mixed, idle cells and CRLF as Python's csv.writer leaves them: no built-in schedule.
TEST_F(ExecuteSchedules, AScheduleMadeElsewhereRunsInBothEngines) {
  const std::string tiny = scenarios + "examples/tiny-llama-cpu.yaml";
  std::ofstream(path("own.csv")) << "0F0,0F1,0F2,,0I0,0F3,0B1,0W0,0I2,0I3,0W3,0W2\r\n"
                                    ",1F0,1B0,1F1,1I1,1F2,1W1,1B2,1F3,1B3,,\r\n";
  const std::string own = "schedule.csv=" + path("own.csv");
  const double expected = loss(tiny, {});
  EXPECT_NEAR(loss(tiny, {own}), expected, 1e-9 * expected);
  const auto step = [&](const std::vector<std::string>& more) {
    std::vector<std::string> args{"simulate", tiny, "--json"};
    args.insert(args.end(), more.begin(), more.end());
    const Answer answer = slipway_with(args);
    EXPECT_EQ(answer.status, status_done) << answer.err;
    return nlohmann::json::parse(answer.out);
  };
  const auto theirs = step({"--set", own}), named = step({});
  EXPECT_GT(theirs["tasks"], named["tasks"]);  // the split backwards
  EXPECT_GE(theirs["step_time_s"].get<double>(), named["step_time_s"].get<double>());
}

}  // namespace
}  // namespace slipway::test
