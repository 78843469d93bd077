// The page of --report as text: what it holds, that it needs no network, that it is written whole or not at all. What it
// does in a browser: tests/report/page_test.py.
#include "scenarios/report/report.h"
#include "scenarios/report/page.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "scenarios/predict/readable.h"
#include "scenarios/report/packed.h"
#include "tests/support/command_test.h"

namespace slipway::test {
namespace {

const std::string example = SLIPWAY_SOURCE_DIR "/scenarios/examples/llama-8b-64xh100.yaml";

// The data of a page.
nlohmann::json data_of(const std::string& page) {
  const std::string open = "id=\"report\">", close = "</script>";
  const std::size_t begin = page.find(open) + open.size();
  return nlohmann::json::parse(page.substr(begin, page.find(close, begin) - begin));
}

// The numbers in a text of class Packed, read by the rule in its story.
std::vector<std::int64_t> unpacked(const std::string& base64) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bits;
  for (const char c : base64) {
    if (c == '=') continue;
    const std::size_t value = digits.find(c);
    for (int bit = 5; bit >= 0; --bit) bits += (value >> bit & 1) != 0 ? '1' : '0';
  }
  std::vector<std::int64_t> numbers;
  std::uint64_t number = 0;
  int shift = 0;
  for (std::size_t at = 0; at + 8 <= bits.size(); at += 8) {
    const auto byte = static_cast<std::uint64_t>(std::stoi(bits.substr(at, 8), nullptr, 2));
    number |= (byte & 127) << shift, shift += 7;
    if (byte > 127) continue;
    numbers.push_back(number % 2 == 0 ? static_cast<std::int64_t>(number / 2)
                                      : -static_cast<std::int64_t>(number / 2) - 1);
    number = 0, shift = 0;
  }
  return numbers;
}

TEST(Packed, NumbersOfAllSizesAndBothSignsComeBack) {
  const std::vector<std::int64_t> numbers{0, -1, 1, 300, -300, 63, 64, -64, -65, 1LL << 40, -(1LL << 52)};
  for (std::size_t count = 0; count <= numbers.size(); ++count) {
    Packed packed;
    for (std::size_t i = 0; i < count; ++i) packed.add(numbers[i]);
    EXPECT_EQ(packed.base64().size() % 4, 0U);
    EXPECT_EQ(unpacked(packed.base64()),
              std::vector(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(count)));
  }
}

Report small_report() {
  Report report;
  report.command = "simulate", report.headline = "<b>a & b</b> </script>", report.reason = "why";
  report.cards = {{"step time", "1.2 s", "90 % interval: 1 to 2 s", Tone::good}};
  report.sections = {
      Plot{"plot", "", {"x"}, {"y", PlotAxis::Unit::seconds, true}, {{"s", {1, 2}, {3, std::nan("")}}}, true, {}},
      ReportTable{"table", "", {{"a"}, {"</script>"}}}, Bar{"bar", "", {{"compute", "1 s", 0.5, "compute"}}}};
  return report;
}

TEST(ReportPage, HoldsItsPartsInOrderAndNoTextEndsTheScriptThatHoldsIt) {
  const std::string page = page_text(small_report());
  const nlohmann::json data = data_of(page);
  EXPECT_EQ(data["headline"], "<b>a & b</b> </script>");
  EXPECT_EQ(data["cards"][0]["note"], "90 % interval: 1 to 2 s");
  EXPECT_EQ(data["sections"][0]["series"][0]["y"][1], nullptr) << "JSON has no NaN";
  EXPECT_EQ(data["sections"][1]["rows"][1][0], "</script>");
  EXPECT_EQ(data["sections"][2]["shares"][0]["share"], 0.5);
  std::size_t scripts = 0;
  for (std::size_t at = 0; (at = page.find("</script>", at)) != std::string::npos; ++at) ++scripts;
  EXPECT_EQ(scripts, 3U);
  EXPECT_THAT(page, testing::HasSubstr("&lt;b&gt;a &amp; b"));
}

TEST(ReportPage, LoadsNothingAndStatesTheLicenceOfItsLibrary) {
  const std::string page = page_text(small_report());
  for (const char* load : {"src=", "@import", "url(", "fetch(", "XMLHttpRequest", "import("})
    EXPECT_THAT(page, testing::Not(testing::HasSubstr(load)));
  EXPECT_THAT(page, testing::HasSubstr("The MIT License"));
  EXPECT_THAT(page, testing::HasSubstr("Leon Sorokin"));
}

class ReportCommand : public CommandTest {};

TEST_F(ReportCommand, TheSameCommandWritesTheSamePage) {
  for (const char* name : {"a.html", "b.html"})
    ASSERT_EQ(slipway_with({"simulate", example, "--report", path(name)}).status, 0);
  EXPECT_EQ(text_of(path("a.html")), text_of(path("b.html")));
}

TEST_F(ReportCommand, TheFirstCardIsTheStepTimeOfTheAnswerWithItsInterval) {
  const Answer answer = slipway_with({"simulate", example, "--json", "--report", path("a.html")});
  ASSERT_EQ(answer.status, 0);
  const nlohmann::json summary = nlohmann::json::parse(answer.out), data = data_of(text_of(path("a.html")));
  EXPECT_EQ(data["cards"][0]["name"], "step time");
  const double seconds = std::stod(data["cards"][0]["value"].get<std::string>());
  EXPECT_NEAR(seconds, summary["step_time_s"].get<double>(), 0.01);
  EXPECT_THAT(data["cards"][0]["note"].get<std::string>(), testing::StartsWith("90 % interval: "));
}

// Start, duration and flags of each span are the first, second and fourth of nine numbers.
TEST_F(ReportCommand, ThePackedTimelineHasTheTasksOfAllRanksWithinTheStep) {
  const Answer answer = slipway_with({"simulate", example, "--json", "--report", path("a.html")});
  const nlohmann::json summary = nlohmann::json::parse(answer.out), data = data_of(text_of(path("a.html")));
  for (const nlohmann::json& section : data["sections"]) {
    if (section["type"] != "timeline") continue;
    const nlohmann::json& view = section["view"];
    int ranks = 0;
    std::uint64_t tasks = 0;
    double busy_s = 0;
    for (const nlohmann::json& row : view["rows"]) {
      ranks += row["count"].get<int>();
      for (const nlohmann::json& lane : row["lanes"]) {
        const std::vector<std::int64_t> numbers = unpacked(lane["data"]);
        ASSERT_EQ(numbers.size(), 9 * lane["count"].get<std::size_t>());
        tasks += lane["count"].get<std::uint64_t>();
        for (std::size_t i = 0; i < numbers.size() && lane["computes"]; i += 9)
          busy_s += static_cast<double>(numbers[i + 1]) * view["seconds"].get<double>() / view["ticks"].get<double>() *
                    row["count"].get<double>();
      }
    }
    EXPECT_EQ(ranks, 64);
    EXPECT_EQ(tasks, view["tasks"].get<std::uint64_t>());
    EXPECT_NEAR(busy_s / 64, summary["compute_share"].get<double>() * summary["step_time_s"].get<double>(),
                1e-3 * summary["step_time_s"].get<double>());
    return;
  }
  FAIL() << "the page has no timeline";
}

TEST_F(ReportCommand, AMissingFolderIsRefusedBeforeAnythingIsComputed) {
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"simulate", example},
           {"plan", example},
           {"memory", example},
           {"study", example, "--vary", "layout.pipeline=2,4"},
           {"goodput", example, "--set", "cluster.mtbf_per_node=2000 h", "--set", "run.checkpoint_cost=20 s"},
           {"growth", SLIPWAY_SOURCE_DIR "/scenarios/studies/lau-2024/gpt3-175b-8192xh100.yaml"},
           {"validate"},
           {"execute", SLIPWAY_SOURCE_DIR "/scenarios/examples/tiny-llama-cpu.yaml", "--out", path("run")},
           {"compare", "no.json", "neither.json"}}) {
    std::vector<std::string> args = command;
    args.insert(args.end(), {"--report", path("missing/a.html")});
    const Answer answer = slipway_with(args);
    EXPECT_EQ(answer.status, 2) << command[0];
    EXPECT_EQ(answer.out, "") << command[0];
    EXPECT_THAT(answer.err, testing::HasSubstr("--report")) << command[0];
    EXPECT_THAT(answer.err, testing::HasSubstr("missing")) << command[0];
    EXPECT_EQ(files(), 0U) << command[0];
  }
}

TEST_F(ReportCommand, ASlowGpuStandsInTheFirstSentenceWithWhatItCosts) {
  const std::vector<std::string> slow{"--set", "cluster.stragglers=[{node: 5, gpu: 2, slowdown: 1.5}]"};
  std::vector<std::string> args{"simulate", example, "--json", "--report", path("a.html")};
  args.insert(args.end(), slow.begin(), slow.end());
  const Answer answer = slipway_with(args);
  ASSERT_EQ(answer.status, status_done) << answer.err;
  const auto summary = nlohmann::json::parse(answer.out);
  const std::string cost = readable_seconds(summary["degradation_s"].get<double>());
  EXPECT_THAT(text_of(path("a.html")), testing::HasSubstr("What is slow on this cluster (1 GPU, 0 ports) costs"));
  EXPECT_THAT(text_of(path("a.html")), testing::HasSubstr("of the step, " + cost + ". Compute fills"));
}

TEST_F(ReportCommand, MemoryOfAComparisonHasTheCapacityOfThePredictedMachine) {
  const auto level_of = [&](const std::string& title) {
    const nlohmann::json data = data_of(text_of(path("a.html")));
    for (const auto& section : data["sections"])
      if (section["type"] == "plot" && section["title"].get<std::string>().starts_with(title))
        return section["levels"].at(0)["y"].at(0).get<double>();
    return 0.0;
  };
  ASSERT_EQ(slipway_with({"simulate", example, "--set", "schedule.global_batch=8", "--trace", path("p.json"),
                          "--report", path("a.html")})
                .status,
            0);
  const double capacity = level_of("Memory");
  std::string trace = text_of(path("p.json"));
  for (std::size_t at; (at = trace.find("simgrid")) != std::string::npos;) trace.replace(at, 7, "libtorch");
  std::ofstream(path("m.json")) << trace;
  const Answer answer = slipway_with({"compare", path("p.json"), path("m.json"), "--report", path("a.html")});
  ASSERT_EQ(answer.status, 0) << answer.err;
  EXPECT_GT(capacity, 70e9) << "an H100 of 80 GB";
  EXPECT_EQ(level_of("Memory"), capacity);
}

TEST_F(ReportCommand, AScenarioThatIsRefusedLeavesNoPage) {
  EXPECT_EQ(slipway_with({"simulate", example, "--set", "layout.tensor=3", "--report", path("a.html")}).status, 2);
  EXPECT_EQ(files(), 0U);
}

}  // namespace
}  // namespace slipway::test
