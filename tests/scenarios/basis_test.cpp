// The basis of a prediction's times: printed with the answer, and equal to the published tables.
#include "scenarios/predict/basis.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "scenarios/laboratory/tables/table.h"
#include "scenarios/language/load_constants.h"
#include "scenarios/predict/load_scenario.h"
#include "tests/support/command_test.h"
#include "tests/support/scenario_file.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string root = SLIPWAY_SOURCE_DIR, llama = root + "/scenarios/examples/llama-8b-64xh100.yaml",
                  tiny = root + "/scenarios/examples/tiny-llama-cpu.yaml";

std::string simulated(std::vector<std::string> settings, const std::string& scenario = llama) {
  std::vector<std::string> args{"simulate", scenario};
  for (const std::string& setting : settings) args.insert(args.end(), {"--set", setting});
  const Answer answer = slipway_with(args);
  EXPECT_EQ(answer.status, status_done) << answer.err;
  return answer.out;
}

nlohmann::json summary(std::vector<std::string> settings, const std::string& scenario = llama) {
  std::vector<std::string> args{"simulate", scenario, "--json"};
  for (const std::string& setting : settings) args.insert(args.end(), {"--set", setting});
  return nlohmann::json::parse(slipway_with(args).out);
}

// The trainers of a published table's measured runs on a machine.
std::set<std::string> trainers_measured_on(const std::string& machine) {
  std::set<std::string> trainers;
  for (const FittedTable& table : tables_of_built_in_constants())
    for (const PublishedRow& row : read_table_file(root + "/" + table.file).rows)
      if (row.machine == machine && row.status == RowStatus::ok) trainers.insert(row.trainer);
  return trainers;
}

TEST(Basis, WithoutATrainerItSaysThatGenericIsMeantAndWhoHasPublishedRunsOnThisMachine) {
  EXPECT_THAT(simulated({}),
              HasSubstr("No trainer is named (cluster.trainer): priced as generic trains. What yours has "
                        "of its own is unknown.\nTrainers with published runs on this machine: "
                        "llm-foundry, nanotron.\n"));
  EXPECT_THAT(simulated({"cluster.machine=h200"}), Not(HasSubstr("with published runs on this machine")));
  for (const std::string machine : {"h100-80gb", "a100-80gb", "h100-94gb", "h200"}) {
    const auto json = summary({"cluster.machine=" + machine});
    EXPECT_EQ(json["basis"], "generic");
    EXPECT_EQ(json["fitted_trainers"].get<std::set<std::string>>(), trainers_measured_on(machine)) << machine;
  }
}

TEST(Basis, AProfileOfAFileIsNamedWithItsSourceOrWithThatItHasNone) {
  const std::string profile = text_of(root + "/models/machine/profiles/b200.yaml");
  const ScenarioFolder folder;
  const auto simulated_on = [&](const std::string& name, const std::string& provenance) {
    std::string text = profile;
    if (const auto at = text.find("\nprovenance:"); at != std::string::npos) text.erase(at);
    return simulated({"cluster.machine=" + folder.write(name, text + provenance)});
  };
  EXPECT_THAT(simulated_on("sourced.yaml", "\nprovenance: {source: a data sheet, date: 2026-01-02}\n"),
              HasSubstr("Machine profile " + folder.path().string() + "/sourced.yaml: a data sheet, 2026-01-02.\n"));
  EXPECT_THAT(simulated_on("unsourced.yaml", "\n"), HasSubstr("/unsourced.yaml: its numbers have no stated source"));
}

TEST(Basis, ATrainerOfAFileIsNamedByItAndItsRunsAreUnknown) {
  const ScenarioFolder folder;
  const std::string file = folder.write("nanotron.yaml", text_of(root + "/models/trainers/nanotron.yaml"));
  const std::string text = simulated({"cluster.trainer=" + file, "layout.zero=3"});
  EXPECT_THAT(text, HasSubstr("; as nanotron of " + file + " trains"));
  EXPECT_THAT(text, Not(HasSubstr("Outside the runs")));
  EXPECT_THAT(simulated({"cluster.trainer=nanotron"}), Not(HasSubstr("nanotron of")));
}

TEST(Basis, TimesOfABlockTableAreNamedOnWhateverMachine) {
  const std::string text =
      simulated({"cluster.machine=b200"}, root + "/scenarios/studies/pipefisher-2022/bert-base.yaml");
  EXPECT_THAT(text, HasSubstr("Blocks take the times of a table, on any machine: "));
  EXPECT_THAT(text, HasSubstr("P100"));
}

TEST(Basis, ATrainerThatNobodyTimedOnTheMachineIsPricedAndTheMachineNamed) {
  const std::string text = simulated({"cluster.trainer=aa-scaling"});
  EXPECT_THAT(text, HasSubstr("None of the fitted runs is of aa-scaling on h100-80gb: "));
  const auto json = summary({"cluster.trainer=aa-scaling"});
  EXPECT_EQ(json["basis"], "aa-scaling");
  EXPECT_EQ(json["not_seen"], "h100-80gb");
  EXPECT_EQ(json["outside_fit"], nlohmann::json::array());
  EXPECT_EQ(summary({"cluster.trainer=nanotron"})["not_seen"], "");
  EXPECT_EQ(summary({})["not_seen"], "h100-80gb");
}

TEST(Basis, OnAProfileOfSharesOfPeakNoTrainerIsMeant) {
  EXPECT_THAT(simulated({}, tiny), Not(HasSubstr("No trainer is named")));
}

TEST(Basis, ATrainerWithoutRunsIsComparedWithAllOfTheMachine) {
  const std::string text = simulated({"schedule.name=zb-h1"});
  EXPECT_THAT(text, HasSubstr("Outside the runs published on h100-80gb: schedule zb-h1 (fitted: 1f1b)"));
  EXPECT_THAT(simulated({"schedule.name=zb-h1", "cluster.machine=b200"}),
              HasSubstr("Outside the runs published: schedule zb-h1 (fitted: 1f1b)"));
}

// The fitted runs are of dense models in 16 bits.
TEST(Basis, ExpertsNarrowProductsAndADispatcherOfFewMeasurementsAreOutside) {
  const auto outside = [](const std::vector<std::string>& sets) {
    std::vector<std::string> whats;
    const auto answer = summary(sets, root + "/scenarios/examples/mixtral-8x7b-64xh100.yaml");
    for (const auto& each : answer["outside_fit"])
      whats.push_back(each["what"].get<std::string>() + " " + each.value("here", nlohmann::json()).dump());
    return whats;
  };
  EXPECT_THAT(outside({}), testing::Contains("layers \"with experts\""));
  EXPECT_THAT(outside({}), Not(testing::Contains(HasSubstr("products"))));
  EXPECT_THAT(outside({"run.fp8=delayed"}), testing::Contains("products \"delayed\""));
  EXPECT_THAT(outside({"layout.expert=4", "layout.dispatcher=hybridep"}), testing::Contains("levers \"hybridep\""));
  EXPECT_THAT(outside({"layout.expert=4", "layout.dispatcher=deepep"}), Not(testing::Contains(HasSubstr("levers"))));
}

// Without measured kernels a trainer's facts price nothing: a profile of one's own says all.
TEST(Basis, ATrainerOnAMachineWithoutMeasuredKernelsIsNoBasisOfTimes) {
  std::vector<std::string> args{"simulate", tiny, "--set", "cluster.trainer=nanotron", "--json"};
  const auto json = nlohmann::json::parse(slipway_with(args).out);
  EXPECT_EQ(json["basis"], "profile");
  EXPECT_FALSE(json.contains("not_seen"));
}

// LLM Foundry's tables are of FSDP alone, as MosaicML runs it: no tensor, pipeline or context parallelism.
TEST(Basis, ALayoutThatTheTrainerWasNeverFittedToIsNamedWithWhatItWasFittedTo) {
  const std::string text = simulated({"cluster.trainer=llm-foundry"});
  EXPECT_THAT(
      text, HasSubstr("Outside the runs that llm-foundry was fitted to: tensor 8 (fitted: 1), pipeline 4 (fitted: 1)"));
  const auto json = summary({"cluster.trainer=llm-foundry"});
  EXPECT_EQ(json["basis"], "llm-foundry");
  EXPECT_EQ(json["outside_fit"][0], (nlohmann::json{{"what", "tensor"}, {"here", 8.0}, {"least", 1.0}, {"most", 1.0}}));
}

// The Playbook's runs do not recompute, Megatron-LM's (2021) all do. Ranges of degrees alone do not show that.
TEST(Basis, ChoicesThatNoFittedRunMadeAreNamed) {
  EXPECT_THAT(simulated({"cluster.trainer=nanotron", "schedule.recompute=full"}),
              HasSubstr("recompute full (fitted: none)"));
  EXPECT_THAT(simulated({"cluster.trainer=megatron-lm", "cluster.machine=a100-80gb"}),
              HasSubstr("recompute none (fitted: full)"));
  EXPECT_THAT(simulated({"cluster.trainer=nanotron", "schedule.name=zb-h1"}),
              HasSubstr("schedule zb-h1 (fitted: 1f1b)"));
}

// Five commands print times and memory of a trainer; each says where they are extrapolated.
TEST(Basis, EveryCommandThatShowsTimesOrMemorySaysOnWhatTheyRest) {
  const std::string range = "zero 3 (fitted: 0 to 1)", book = "No trainer is named (cluster.trainer)";
  const std::vector<std::string> zero{"--set", "cluster.trainer=nanotron", "--set", "layout.zero=3"};
  const auto printed = [&](std::vector<std::string> args, const std::vector<std::string>& more) {
    args.insert(args.end(), more.begin(), more.end());
    const Answer answer = slipway_with(args);
    EXPECT_EQ(answer.status, status_done) << answer.err;
    return answer.out;
  };
  const std::vector<std::string> faults{"--set", "cluster.mtbf_per_node=2000 h", "--set", "run.checkpoint_cost=20 s"};
  std::vector<std::string> goodput{"goodput", llama, "--histories", "2"};
  goodput.insert(goodput.end(), faults.begin(), faults.end());
  const std::vector<std::vector<std::string>> commands{
      {"simulate", llama},
      {"plan", llama, "--keep", "layout.zero", "--keep", "layout.tensor", "--keep", "layout.pipeline"},
      {"study", llama},
      goodput,
      {"memory", llama, "--changes"}};
  for (const auto& command : commands) {
    EXPECT_THAT(printed(command, zero), HasSubstr(range)) << command.front();
    EXPECT_THAT(printed(command, {}), HasSubstr(book)) << command.front();
    std::vector<std::string> with_json = zero;
    with_json.emplace_back("--json");
    const auto json = nlohmann::json::parse(printed(command, with_json));
    const auto& keys = command.front() == "study" ? json["points"][0] : json;
    EXPECT_EQ(keys["basis"], "nanotron") << command.front();
    EXPECT_EQ(keys["not_seen"], "") << command.front();
  }
  EXPECT_THAT(printed({"memory", llama}, zero),
              HasSubstr("Outside the runs that the memory of nanotron was fitted to: "));
}

// Half a tile of a product: no published run computed fewer than 512 tokens at once (LLM Foundry, sequence 512).
TEST(Basis, SlicesShorterThanAnyPublishedRunAreCalledExtrapolated) {
  const auto sliced = [](int slices, std::vector<std::string> more) {
    more.insert(more.end(),
                {"schedule.name=terapipe", "schedule.slices=" + std::to_string(slices), "schedule.global_batch=8"});
    return more;
  };
  const std::string book = simulated(sliced(128, {}));
  EXPECT_THAT(book, HasSubstr("so extrapolated: tokens of a slice 64 (fitted: "));
  EXPECT_THAT(book, HasSubstr("No trainer is named"));
  EXPECT_THAT(simulated(sliced(128, {"cluster.trainer=nanotron"})),
              HasSubstr("so extrapolated: tokens of a slice 64 (fitted: "));
  EXPECT_THAT(simulated(sliced(2, {})), Not(HasSubstr("extrapolated")));
  EXPECT_EQ(summary(sliced(128, {}))["outside_fit"].back()["here"], 64);
}

TEST(Basis, AStudyCountsThePointsThatAreOutside) {
  const Answer answer =
      slipway_with({"study", llama, "--set", "cluster.trainer=nanotron", "--vary", "layout.zero=1,2,3"});
  ASSERT_EQ(answer.status, status_done) << answer.err;
  EXPECT_THAT(answer.out,
              HasSubstr("zero 2 (fitted: 0 to 1) in 1 of 3 points, zero 3 (fitted: 0 to 1) in 1 of 3 points"));
}

// The Playbook's own table: largest and smallest of a column of what ran.
std::pair<double, double> range_in_playbook(const std::string& column) {
  double least = 1e300, most = 0;
  for (const PublishedRow& row : read_table_file(root + "/scenarios/studies/ultrascale-2025/runs.csv").rows) {
    const std::string key = "schedule." + column;
    if (!row.keys.contains(key)) continue;
    least = std::min(least, std::stod(row.keys.at(key))), most = std::max(most, std::stod(row.keys.at(key)));
  }
  return {least, most};
}

TEST(Basis, InsideThePublishedRangeNothingIsSaidAndBeyondItTheRangeIsTheTables) {
  const auto [least, most] = range_in_playbook("micro_batch");
  ASSERT_GE(most, 2);
  LoadResult loaded = load_scenario(llama, {"cluster.trainer=nanotron"});
  ASSERT_TRUE(loaded.errors.empty());
  Scenario& scenario = loaded.scenario;
  const auto named = [&](const std::string& what) {
    for (const OutsideFit& outside : basis_of(scenario).outside)
      if (outside.what == what) return std::optional(outside);
    return std::optional<OutsideFit>();
  };
  scenario.step.micro_batch = static_cast<std::int64_t>(least);
  EXPECT_FALSE(named("micro-batch"));
  scenario.step.micro_batch = 100000;
  ASSERT_TRUE(named("micro-batch"));
  EXPECT_GE(named("micro-batch")->least, least);
  EXPECT_LE(named("micro-batch")->most, most);
}

// `slipway calibrate --runs` writes the runs into the file of the constants. What memory rests on stays.
TEST(Basis, TheUsersOwnRunsAreAmongThoseThatTheConstantsWereFittedTo) {
  const ScenarioFolder folder;
  PooledConstants constants = built_in_constants();
  const auto with_constants = [&] {
    const std::string file = folder.write("constants.yaml", constants_to_yaml(constants, "of a test"));
    return summary({"cluster.trainer=llm-foundry", "cluster.constants=" + file});
  };
  const auto tensor_is_outside = [](const nlohmann::json& answer) {
    return std::ranges::any_of(answer["outside_fit"], [](const auto& each) { return each["what"] == "tensor"; });
  };
  const auto built_in = summary({"cluster.trainer=llm-foundry"}), none = with_constants();
  EXPECT_TRUE(tensor_is_outside(built_in));
  EXPECT_EQ(none["outside_fit"], built_in["outside_fit"]);
  EXPECT_EQ(none["step_time_s"], built_in["step_time_s"]);
  EXPECT_EQ(none["basis"], "llm-foundry");

  PublishedRow row = *std::ranges::find_if(published_rows(), [](const PublishedRow& each) {
    return each.trainer == "llm-foundry" && each.machine == "h100-80gb" && each.unpriceable.empty();
  });
  row.step.layout.tensor = 8, row.step.layout.sequence_parallel = true;
  add_run(row.step, row.trainer, row.machine, FittedOf::times, constants.seen);
  const auto own = with_constants();
  EXPECT_FALSE(tensor_is_outside(own));
  EXPECT_EQ(own["memory_outside_fit"], built_in["memory_outside_fit"]);
  const auto width = [](const nlohmann::json& answer) {
    return answer["step_time_high_s"].get<double>() / answer["step_time_low_s"].get<double>();
  };
  EXPECT_LT(width(own), width(none));
}

// A machine that only the user has timed the trainer on.
TEST(Basis, AMachineOfTheUsersOwnRunsHasBeenSeen) {
  const ScenarioFolder folder;
  PooledConstants constants = built_in_constants();
  PublishedRow row = *std::ranges::find_if(published_rows(), [](const PublishedRow& each) {
    return each.trainer == "llm-foundry" && each.machine == "h100-80gb" && each.unpriceable.empty();
  });
  add_run(row.step, row.trainer, "h200", FittedOf::times, constants.seen);
  const std::string file = folder.write("constants.yaml", constants_to_yaml(constants, "of a test"));
  const std::vector<std::string> h200{"cluster.trainer=llm-foundry", "cluster.machine=h200"};
  EXPECT_EQ(summary(h200)["not_seen"], "h200");
  EXPECT_EQ(summary({h200[0], h200[1], "cluster.constants=" + file})["not_seen"], "");
}

}  // namespace
}  // namespace slipway::test
