// slipway growth --fit RUN: runs whose noise and loss are known, one that was executed, and folders that are no run.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/drawn_runs.h"
#include "tests/executing_test.h"

namespace slipway {
namespace {

using testing::HasSubstr;

const std::string tiny = SLIPWAY_SOURCE_DIR "/scenarios/examples/tiny-llama-cpu.yaml";  // sequences of 64 tokens, batch 8
constexpr double sequence = 64;
const DrawnRun drawn{{5, 1, 30, 0.5, 4000, 3, 2.5}, 32, 40, 0.005};

class GrowthOfARun : public ExecutingTest {
 protected:
  // A folder as `execute` leaves it, of steps of these batches.
  std::string run_of(const std::string& name, const std::vector<double>& batches, std::uint64_t seed, bool norms = true) const {
    const std::string folder = path(name);
    std::filesystem::create_directories(folder);
    EXPECT_EQ(slipway_with({"lower", tiny, "-o", folder + "/run.slip"}).status, status_done);
    std::vector<double> tokens;
    for (const double batch : batches) tokens.push_back(batch * sequence);
    std::string rows = norms ? "step,samples,loss,learning_rate,batch,gradient_square,gradient_variance\n"
                             : "step,samples,loss,learning_rate\n";
    double samples = 0;
    const std::vector<GradientStep> steps = drawn_run(drawn, tokens, seed);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      samples += batches[i];
      rows += fmt::format("{},{},{},0.001", i + 1, samples, steps[i].loss);
      rows += norms ? fmt::format(",{},{},{}\n", batches[i], steps[i].square, steps[i].variance) : "\n";
    }
    std::ofstream(folder + "/losses.csv") << rows;
    return folder;
  }
  nlohmann::json fitted(std::vector<std::string> args) const {
    args.insert(args.begin(), {"growth", "--json", "--floor", "1", "--fit"});
    const Answer answer = slipway_with(args);
    EXPECT_EQ(answer.status, status_done) << answer.err;
    return answer.status == status_done ? nlohmann::json::parse(answer.out) : nlohmann::json();
  }
};

std::vector<double> growing() {
  std::vector<double> batches(200, 40);
  batches.insert(batches.end(), 400, 120);
  return batches;
}

TEST_F(GrowthOfARun, GivesTheNumbersThatTheRunWasMadeWithAndPredictsAnother) {
  const auto json = fitted({run_of("grown", growing(), 1), "--unseen", run_of("small", std::vector<double>(600, 8), 2, false)});
  EXPECT_EQ(json["steps"], 600);
  EXPECT_NEAR(json["noise_scale"].get<double>() / noise_scale_at(drawn.truth, json["noise_loss"]), 1, 0.03);
  EXPECT_NEAR(json["noise_exponent"].get<double>(), 2.5, 0.15);
  EXPECT_NEAR(json["exponent"].get<double>(), 0.5, 0.03);
  ASSERT_EQ(json["unseen"].size(), 1U);
  const auto& small = json["unseen"][0];
  EXPECT_EQ(small["batches"], nlohmann::json({8, 8})) << "of its bundle, where the losses tell none";
  EXPECT_NEAR(small["predicted_tokens"].get<double>() / small["tokens"].get<double>(), 1, 0.1);
  EXPECT_NEAR(small["predicted_loss"].get<double>() / small["last_loss"].get<double>(), 1, 0.01);
  ASSERT_EQ(json["ends"].size(), 3U);
  for (const auto& end : json["ends"]) EXPECT_NEAR(end["loss"].get<double>() / json["last_loss"].get<double>(), 1, 0.03);
}

TEST_F(GrowthOfARun, ItsLinesLoadInAScenario) {
  const Answer fit = slipway_with({"growth", "--fit", run_of("it's #1", growing(), 1), "--floor", "1"});
  ASSERT_EQ(fit.status, status_done) << fit.err;
  EXPECT_THAT(fit.out, HasSubstr("No run that the fit has not seen was given (--unseen)."));
  std::ofstream(path("grown.yaml")) << std::ifstream(SLIPWAY_SOURCE_DIR "/scenarios/examples/llama-8b-64xh100.yaml").rdbuf()
                                    << fit.out.substr(fit.out.find("\ntraining:\n"));
  const Answer answer = slipway_with({"growth", path("grown.yaml"), "--json", "--set", "run.tokens=", "--set",
                                      "training.target_loss=3.1", "--set", "training.growth={rule: constant, largest: 2048}"});
  ASSERT_EQ(answer.status, status_done) << answer.err;
  const double last = nlohmann::json::parse(fitted({path("it's #1")}).dump())["last_loss"];
  EXPECT_THAT(fit.out, HasSubstr(fmt::format("fitted: {{batches: [40, 120], lowest_loss: {:.4g}}}", last)));
}

TEST_F(GrowthOfARun, ANoiseExponentThatIsGivenIsTakenAndALossBeforeAfterDoesNotCount) {
  const std::string run = run_of("grown", growing(), 1);
  const auto given = fitted({run, "--noise-exponent", "1"});
  EXPECT_EQ(given["noise_exponent"], 1);
  EXPECT_FALSE(given.contains("noise_exponent_range"));
  const auto later = fitted({run, "--after", fmt::format("{}", 100 * 40 * sequence)});
  EXPECT_EQ(later["groups"][0]["first_step"], 101);
}

TEST_F(GrowthOfARun, ThatWasExecutedIsMeasuredByItsOwnLosses) {
  const Answer run = slipway_with({"execute", tiny, "--out", path("run"), "--set", "layout={data: 2}", "--set", "run.steps=40",
                                   "--set", "training.growth={rule: norm-test, largest: 32, eta: 0.3, sizes: 4}"});
  ASSERT_EQ(run.status, status_done) << run.err;
  const auto json = fitted({path("run")});
  // The same groups' sums by hand.
  std::ifstream losses(path("run/losses.csv"));
  std::string line;
  std::getline(losses, line);
  double trace = 0, signal = 0;
  for (int step = 0; step < json["groups"][0]["steps"] && std::getline(losses, line); ++step) {
    double samples = 0, loss = 0, rate = 0, batch = 0, square = 0, variance = 0;
    int number = 0;
    ASSERT_EQ(std::sscanf(line.c_str(), "%d,%lf,%lf,%lf,%lf,%lf,%lf", &number, &samples, &loss, &rate, &batch, &square, &variance), 7);
    trace += batch * sequence * variance;
    signal += square - variance;
  }
  EXPECT_NEAR(json["groups"][0]["noise_scale"].get<double>() / (trace / signal), 1, 1e-9);
}

TEST_F(GrowthOfARun, AFolderThatIsNoSuchRunIsRefusedWithWhatToDo) {
  const auto said = [&](std::vector<std::string> args) {
    args.insert(args.begin(), {"growth", "--fit"});
    const Answer answer = slipway_with(args);
    EXPECT_EQ(answer.status, status_usage);
    EXPECT_EQ(answer.out, "");
    return answer.err;
  };
  std::filesystem::create_directories(path("empty"));
  EXPECT_THAT(said({path("empty")}), HasSubstr("empty/losses.csv'; give the folder (--out) of a run"));
  const std::string silent = run_of("silent", std::vector<double>(60, 8), 1, false), grown = run_of("grown", growing(), 1);
  EXPECT_THAT(said({silent}), HasSubstr("execute it with the norm test"));
  EXPECT_THAT(said({run_of("short", std::vector<double>(12, 8), 1)}), HasSubstr("at least 20 steps; there are 12"));
  EXPECT_THAT(said({grown, "--floor", "4"}), HasSubstr("below every loss"));
  EXPECT_THAT(said({grown, "--after", "1 G"}), HasSubstr("lower --after"));
  EXPECT_THAT(said({grown, "--unseen", path("none")}), HasSubstr("none' is no folder"));
  EXPECT_THAT(said({grown, "--unseen", grown}), HasSubstr("which the fit has seen; give another run"));
  EXPECT_THAT(said({grown, "--noise-exponent", "1e9"}), HasSubstr("is no exponent; allowed: a number from 0 to 100"));
  EXPECT_THAT(said({grown + "/losses.csv"}), HasSubstr("give its folder"));
  const auto with_row = [&](const std::string& row) {
    const std::string folder = run_of("odd", std::vector<double>(30, 8), 1);
    std::ofstream(folder + "/losses.csv", std::ios::app) << row << '\n';
    return said({folder});
  };
  EXPECT_THAT(with_row("31,248,nan,0.001,8,1,1"), HasSubstr("losses.csv:32: column loss"));
  EXPECT_THAT(with_row("33,248,2,0.001,8,1,1"), HasSubstr("column step: 33 where 31 follows"));
  EXPECT_THAT(with_row("31,248,2"), HasSubstr("3 fields below 7 columns"));
  std::ofstream(path("odd/losses.csv")) << "step,samples,loss,learning_rate,batch,gradient_square,gradient_variance\n5,40,2,0.001,8,1,1\n";
  EXPECT_THAT(said({path("odd")}), HasSubstr("went on from a checkpoint of another folder"));
}

}  // namespace
}  // namespace slipway
