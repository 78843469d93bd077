// slipway growth --fit: the study's curves, and invalid tables.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <cmath>

#include "models/training/loss_dynamics.h"
#include "tests/support/command_test.h"
#include "tests/support/drawn_runs.h"
#include "tests/support/executing_test.h"

namespace slipway::test {

namespace {

using testing::HasSubstr;

using Commands = CommandTest;

const std::string curves = SLIPWAY_SOURCE_DIR "/scenarios/studies/lau-2024/curves.csv";

TEST_F(Commands, TheStudysLeftOutErrorsAreThoseOfTheTableBesideTheFit) {
  const Answer answer =
      slipway_with({"growth", "--fit", curves, "--floor", "1.6", "--after", "200 M", "--target", "2.69", "--json"});
  ASSERT_EQ(answer.status, status_done) << answer.err;
  const auto json = nlohmann::json::parse(answer.out);
  // Medians of curves.csv's crossings of 2.69, and of the other sizes' medians, by another program.
  const double by_hand[][3] = {{2048, 1188247409.27, 1211623269.59}, {2304, 1182696981.51, 1211623269.59},
                               {2560, 1189912344.45, 1211623269.59}, {2688, 1196653387.50, 1211623269.59},
                               {2904, 1211623269.59, 1196653387.50}, {3072, 1221438140.44, 1196653387.50},
                               {4096, 1276682289.51, 1196653387.50}, {6144, 1380764803.56, 1196653387.50}};
  ASSERT_EQ(json["left_out"].size(), std::size(by_hand));
  double predicted = 0;
  for (std::size_t i = 0; i < std::size(by_hand); ++i) {
    const auto& row = json["left_out"][i];
    EXPECT_EQ(row["batch"].get<double>(), by_hand[i][0]);
    EXPECT_NEAR(row["measured"].get<double>() / by_hand[i][1], 1, 1e-9);
    EXPECT_NEAR(row["constant"].get<double>() / by_hand[i][2], 1, 1e-9);
    predicted += std::abs(row["predicted"].get<double>() / by_hand[i][1] - 1) / std::size(by_hand);
  }
  EXPECT_NEAR(json["predicted_error"].get<double>(), predicted, 1e-9);
  EXPECT_NEAR(json["constant_error"].get<double>(), 0.0379447, 1e-6);
}

TEST_F(Commands, TheStudysNoiseRangeHoldsTheIntervalsOfOneLearningRateAndSaysWhichIsUnknown) {
  const std::vector<std::string> args{"growth", "--fit", curves, "--floor", "1.6", "--after", "200 M"};
  auto for_programs = args;
  for_programs.push_back("--json");
  const auto json = nlohmann::json::parse(slipway_with(for_programs).out);
  const auto &range = json["noise_range"], &rates = json["by_learning_rate"];
  ASSERT_EQ(rates.size(), 2U);
  for (const auto& interval : {json["parameters"][3]["interval"], rates[0]["interval"]}) {
    EXPECT_LE(range[0].get<double>(), interval[0].get<double>());
    EXPECT_GE(range[1].get<double>(), interval[1].get<double>());
  }
  EXPECT_FALSE(rates[1].contains("interval")) << "two submissions";
  EXPECT_TRUE(json["parameters"][3]["sure"].get<bool>());
  const Answer words = slipway_with(args);
  EXPECT_THAT(words.out, HasSubstr("(interval unknown: 2 submissions), of 2 batch sizes"));
  EXPECT_THAT(words.out, HasSubstr("without the unknown intervals"));
}

// Curves by a constant noise scale of 3 M tokens: submission, batch and losses at every 20 M tokens.
std::string rows_of(const std::string& submission, int batch, int points) {
  const LossDynamics truth{3.2, 1.6, 400, 0.3, 3e6, 2.9, 0};
  std::string rows;
  for (int i = 1; i <= points; ++i) {
    const double tokens = 2e7 * i * (1 + batch / 4096.0);
    rows += fmt::format("{},0,8192,{},1e-4,{:.17g},{:.17g}\n", submission, batch, tokens,
                        loss_after(truth, tokens / (batch * 8192.0 + 3e6)));
  }
  return rows;
}

std::string table(const std::string& rows,
                  const std::string& header = "submission,run,sequence,global_batch,learning_rate,tokens,loss") {
  return header + "\n" + rows;
}

TEST_F(Commands, AFitIsToldTheNoiseExponentItAssumes) {
  std::string rows;
  for (const char* who : {"a", "b", "c"})
    for (const int batch : {64, 512, 4096}) rows += rows_of(who + std::to_string(batch), batch, 20);
  std::ofstream(path("curves.csv")) << table(rows);
  const std::vector<std::string> args{"growth", "--fit", path("curves.csv"), "--floor", "1.6"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), args.begin(), args.end());
    return slipway_with(more);
  };
  const auto right = nlohmann::json::parse(with({"--noise-exponent", "0", "--json"}).out);
  EXPECT_NEAR(right["parameters"][3]["value"].get<double>() / 3e6, 1, 1e-3);
  EXPECT_EQ(right["noise_exponent"].get<double>(), 0);
  const auto wrong = nlohmann::json::parse(with({"--json"}).out);
  EXPECT_GT(std::abs(wrong["parameters"][3]["value"].get<double>() / 3e6 - 1), 1e-3) << "it is in the answer";
  EXPECT_THAT(with({}).out, HasSubstr("noise scale ~ loss^-4.76; the intervals hold if these are right"));
  EXPECT_THAT(with({"--noise-exponent", "0"}).out, HasSubstr("noise scale constant; the intervals hold"));
  EXPECT_THAT(with({"--noise-exponent", "-1"}).err, HasSubstr("is no exponent"));
}

TEST_F(Commands, TheLinesOfAFitLoadInAScenarioWhateverTheTableIsCalled) {
  const std::string odd = path("it's \"odd\": #1, {x}.csv");
  std::ofstream(odd) << table(rows_of("a", 64, 20) + rows_of("b", 512, 20) + rows_of("c", 4096, 20));
  for (const char* exponent : {"0", "2"}) {
    const Answer fit = slipway_with({"growth", "--fit", odd, "--floor", "1.6", "--noise-exponent", exponent});
    ASSERT_EQ(fit.status, status_done) << fit.err;
    const std::string lines = fit.out.substr(fit.out.find("\ntraining:\n"));
    std::ofstream(path("grown.yaml"))
        << std::ifstream(SLIPWAY_SOURCE_DIR "/scenarios/examples/llama-8b-64xh100.yaml").rdbuf() << lines;
    const Answer answer =
        slipway_with({"growth", path("grown.yaml"), "--json", "--set", "run.tokens=", "--set",
                      "training.target_loss=3.1", "--set", "training.growth={rule: constant, largest: 2048}"});
    ASSERT_EQ(answer.status, status_done) << answer.err << lines;
    EXPECT_EQ(nlohmann::json::parse(answer.out)["source"], odd + ", by slipway growth --fit");
  }
}

TEST_F(Commands, AFitWhoseNoiseScaleIsNotToldSaysSoFirst) {
  std::ofstream(path("curves.csv")) << table(rows_of("a", 64, 20) + rows_of("b", 512, 20));
  const Answer few = slipway_with({"growth", "--fit", path("curves.csv"), "--floor", "1.6"});
  EXPECT_THAT(few.out, HasSubstr("sequences\n\nThese curves do not determine the noise scale (fitted: "));
  EXPECT_THAT(few.out, HasSubstr("interval unknown: 2 submissions)."));
  EXPECT_THAT(few.out, HasSubstr("Fewer than three batch sizes: none can be left out"));
}

TEST_F(Commands, AFitCountsNothingOfCurvesThatEndBeforeTheFirstLossThatCounts) {
  std::ofstream(path("curves.csv")) << table(rows_of("a", 64, 20) + rows_of("b", 512, 20) + rows_of("c", 4096, 3));
  const Answer answer = slipway_with({"growth", "--fit", path("curves.csv"), "--floor", "1.6", "--after", "200 M"});
  EXPECT_THAT(answer.out, HasSubstr("2 runs of 2 submissions, 2 batch sizes from 64 to 512 sequences"));
  EXPECT_THAT(answer.out, HasSubstr("batches: [64, 512]"));
  EXPECT_THAT(slipway_with({"growth", "--fit", path("curves.csv"), "--after", "1 T"}).err,
              HasSubstr("no loss that counts; lower --after"));
}

TEST_F(Commands, ATargetThatNoRunFallsToIsRefusedAndOneThatOneSizeFallsToLeavesNoneOut) {
  std::ofstream(path("curves.csv")) << table(rows_of("a", 64, 20) + rows_of("b", 512, 20) + rows_of("c", 4096, 3));
  const auto to = [&](const char* loss) {
    return slipway_with({"growth", "--fit", path("curves.csv"), "--floor", "1.6", "--target", loss});
  };
  EXPECT_EQ(to("2.0").status, status_usage);
  EXPECT_THAT(to("2.0").err, HasSubstr("no run falls from above to --target 2; allowed: a loss between"));
  const LossDynamics truth{3.2, 1.6, 400, 0.3, 3e6, 2.9, 0};
  const double lowest_of_b = loss_after(truth, 2e7 * 20 * 1.125 / (512 * 8192 + 3e6)),
               lowest_of_a = loss_after(truth, 2e7 * 20 * (1 + 1 / 64.0) / (64 * 8192 + 3e6));
  const std::string between = fmt::format("{:.6f}", (lowest_of_a + lowest_of_b) / 2);
  EXPECT_THAT(to(between.c_str()).out, HasSubstr("Fewer than two batch sizes fall to loss"));
}

TEST_F(Commands, AFitOfWhatIsNoTableOfCurvesNamesLineAndColumn) {
  const std::pair<std::string, const char*> wrong[] = {
      {table("a,0,2048,8,1e-4,16384,3", "submission,run,sequence,global_batch,rate,tokens,loss"),
       "no column learning_rate"},
      {table("a,0,2048,8,1e-4,16384,three"), ":2: column loss: 'three'"},
      {table("a,0,2048,8.5,1e-4,16384,3"), ":2: column global_batch: 8.5 is no whole number"},
      {table("a,0,2048,8,1e-4,16384,0"), ":2: column loss: 0 is not above 0"},
      {table("a,0,2048,8,1e-4,16384,3\na,0,2048,8,1e-4,16384,2.9"), ":3: column tokens: 16384 is not above"},
      {table("a,0,2048,8,1e-4,16384,3\na,1,1024,8,1e-4,16384,3"), ":3: column sequence: 1024 after 2048"},
      {table("a,0,2048,8,1e-4,16384"), ":2: 6 fields below 7 columns"},
      {table("a,0,2048,8,1e-4,16384,3"), "curves of one batch size do not determine the noise scale"},
  };
  for (const auto& [text, message] : wrong) {
    std::ofstream(path("curves.csv")) << text;
    const Answer answer = slipway_with({"growth", "--fit", path("curves.csv")});
    EXPECT_EQ(answer.status, status_usage) << text;
    EXPECT_THAT(answer.err, HasSubstr(message));
  }
  EXPECT_THAT(slipway_with({"growth", "--fit", path("none.csv")}).err, HasSubstr("No such file"));
}

TEST_F(Commands, AFitTakesNoScenarioAndItsOptionsGoWithItAlone) {
  EXPECT_THAT(slipway_with({"growth", "s.yaml", "--fit", curves}).err, HasSubstr("leave out the scenario"));
  EXPECT_THAT(slipway_with({"growth", "s.yaml", "--floor", "1"}).err, HasSubstr("--floor goes with --fit"));
  EXPECT_THAT(slipway_with({"growth", "s.yaml", "--noise-exponent", "1"}).err,
              HasSubstr("--noise-exponent goes with --fit"));
  EXPECT_THAT(slipway_with({"growth"}).err, HasSubstr("a scenario file, or --fit"));
  EXPECT_THAT(slipway_with({"growth", "--fit", curves, "--after", "soon"}).err, HasSubstr("no number of tokens"));
  EXPECT_THAT(slipway_with({"growth", "--fit", curves, "--floor", "-1"}).err, HasSubstr("--floor -1 is no loss"));
  EXPECT_THAT(slipway_with({"growth", "--fit", curves, "--floor", "2.9"}).err,
              HasSubstr("the floor must lie below every loss"));
}

}  // namespace

// slipway growth --fit RUN: runs with known noise and loss, an executed one, and folders that are no run.

namespace {

using testing::HasSubstr;

const std::string tiny =
    SLIPWAY_SOURCE_DIR "/scenarios/examples/tiny-llama-cpu.yaml";  // sequences of 64 tokens, batch 8
constexpr double sequence = 64;
const DrawnRun drawn{{5, 1, 30, 0.5, 4000, 3, 2.5}, 32, 40, 0.005};

class GrowthOfARun : public ExecutingTest {
 protected:
  // A folder as `execute` leaves it, of steps of these batches.
  std::string run_of(const std::string& name, const std::vector<double>& batches, std::uint64_t seed,
                     bool norms = true) const {
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
  const auto json =
      fitted({run_of("grown", growing(), 1), "--unseen", run_of("small", std::vector<double>(600, 8), 2, false)});
  EXPECT_EQ(json["steps"], 600);
  EXPECT_NEAR(json["noise_scale"].get<double>() / noise_scale_at(drawn.truth, json["noise_loss"]), 1, 0.03);
  EXPECT_NEAR(json["noise_exponent"].get<double>(), 2.5, 0.15);
  EXPECT_NEAR(json["exponent"].get<double>(), 0.5, 0.03);
  ASSERT_EQ(json["unseen"].size(), 1U);
  const auto& small = json["unseen"][0];
  EXPECT_EQ(small["batches"], nlohmann::json({8, 8})) << "of its bundle, where the losses have none";
  EXPECT_NEAR(small["predicted_tokens"].get<double>() / small["tokens"].get<double>(), 1, 0.1);
  EXPECT_NEAR(small["predicted_loss"].get<double>() / small["last_loss"].get<double>(), 1, 0.01);
  ASSERT_EQ(json["ends"].size(), 3U);
  for (const auto& end : json["ends"])
    EXPECT_NEAR(end["loss"].get<double>() / json["last_loss"].get<double>(), 1, 0.03);
}

TEST_F(GrowthOfARun, ItsLinesLoadInAScenario) {
  const Answer fit = slipway_with({"growth", "--fit", run_of("it's #1", growing(), 1), "--floor", "1"});
  ASSERT_EQ(fit.status, status_done) << fit.err;
  EXPECT_THAT(fit.out, HasSubstr("No unseen run was given (--unseen)."));
  std::ofstream(path("grown.yaml"))
      << std::ifstream(SLIPWAY_SOURCE_DIR "/scenarios/examples/llama-8b-64xh100.yaml").rdbuf()
      << fit.out.substr(fit.out.find("\ntraining:\n"));
  const Answer answer =
      slipway_with({"growth", path("grown.yaml"), "--json", "--set", "run.tokens=", "--set", "training.target_loss=3.1",
                    "--set", "training.growth={rule: constant, largest: 2048}"});
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
  const Answer run =
      slipway_with({"execute", tiny, "--out", path("run"), "--set", "layout={data: 2}", "--set", "run.steps=40",
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
    ASSERT_EQ(std::sscanf(line.c_str(), "%d,%lf,%lf,%lf,%lf,%lf,%lf", &number, &samples, &loss, &rate, &batch, &square,
                          &variance),
              7);
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
  const std::string silent = run_of("silent", std::vector<double>(60, 8), 1, false),
                    grown = run_of("grown", growing(), 1);
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
  std::ofstream(path("odd/losses.csv"))
      << "step,samples,loss,learning_rate,batch,gradient_square,gradient_variance\n5,40,2,0.001,8,1,1\n";
  EXPECT_THAT(said({path("odd")}), HasSubstr("went on from a checkpoint of another folder"));
}

}  // namespace

}  // namespace slipway::test
