// What the commands refuse to write, and to start on, before they do anything; all reasons at once.
#include <gmock/gmock.h>

#include "tests/command_test.h"

namespace slipway {
namespace {

using testing::HasSubstr;

const std::string tiny = SLIPWAY_SOURCE_DIR "/scenarios/examples/tiny-llama-cpu.yaml";

class Outputs : public CommandTest {
 protected:
  // A copy of the tiny scenario in the folder, which may be lost.
  void SetUp() override {
    CommandTest::SetUp();
    std::string text = text_of(tiny);
    replace(text, "machines/cpu-test.yaml", path("box.yaml"));
    replace(text, "../data/us-founding-documents.txt", path("data.txt"));
    std::ofstream(path("s.yaml")) << text;
    std::ofstream(path("box.yaml")) << text_of(SLIPWAY_SOURCE_DIR "/scenarios/examples/machines/cpu-test.yaml");
    std::ofstream(path("data.txt")) << std::string(10000, 'a');
  }
  static void replace(std::string& text, const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
  }
  void refused(const std::vector<std::string>& args, const std::string& words) const {
    const Answer answer = slipway_with(args);
    EXPECT_EQ(answer.status, status_usage) << args[0] << answer.err;
    EXPECT_THAT(answer.err, HasSubstr(words));
    EXPECT_EQ(answer.out, "");
  }
};

TEST_F(Outputs, AnInputIsNeverOverwrittenByWhateverNameItIsGiven) {
  const std::string s = path("s.yaml");
  std::filesystem::create_symlink(s, path("link.yaml"));
  std::ofstream(path("records.txt")) << "records";
  const std::size_t before = files();
  for (const std::string& input : {s, path("link.yaml"), path("box.yaml"), path("./data.txt")}) {
    refused({"lower", s, "-o", input}, "would overwrite");
    refused({"simulate", s, "--trace", input}, "would overwrite");
    refused({"execute", s, "--trace", input, "--out", path("run")}, "would overwrite");
    refused({"show", s, "--dot", input}, "would overwrite");
    refused({"calibrate", s, "--measure", "-o", input}, "would overwrite");
  }
  refused({"calibrate", s, "--measured", path("records.txt"), "-o", path("records.txt")}, "would overwrite");
  EXPECT_EQ(files(), before);
  EXPECT_EQ(text_of(path("records.txt")), "records");
}

TEST_F(Outputs, AFolderAndADashAreNoFiles) {
  const std::string s = path("s.yaml");
  refused({"simulate", s, "--trace", path("")}, "is a folder; name a file in it");
  refused({"execute", s, "--trace", path(""), "--out", path("run")}, "is a folder; name a file in it");
  refused({"simulate", s, "--trace", "-"}, "--trace - is not standard output");
  refused({"lower", s, "-o", "-"}, "-o - is not standard output");
  EXPECT_EQ(files(), 3u);
}

TEST_F(Outputs, AnOutFolderThatCannotBeMadeIsToldBeforeAnythingStarts) {
  const Answer answer = slipway_with({"execute", path("s.yaml"), "--out", path("data.txt/run")});
  EXPECT_EQ(answer.status, status_usage);
  EXPECT_THAT(answer.err, HasSubstr("data.txt is not a folder; name a folder that you may create"));
  EXPECT_EQ(answer.out, "");
}

TEST_F(Outputs, WhatCannotBeWrittenIsAMistakeOfTheUserKnownBeforeTheWork) {
  const std::string s = path("s.yaml"), nowhere = path("nowhere/x"), table = SLIPWAY_SOURCE_DIR "/scenarios/fujii-2024/runs.csv";
  refused({"simulate", s, "--trace", nowhere}, "--trace: cannot write " + nowhere);
  refused({"plan", s, "-o", nowhere}, "-o: cannot write " + nowhere);
  refused({"lower", s, "-o", nowhere}, "-o: cannot write " + nowhere);
  refused({"study", s, "--vary", "run.seed=1,2", "--csv", nowhere}, "--csv: cannot write " + nowhere);
  refused({"validate", table, "--rows", nowhere}, "--rows: cannot write " + nowhere);
  refused({"validate", table, "--constants", nowhere}, "--constants: cannot write " + nowhere);
  refused({"validate", table, "--rows", table}, "would overwrite");
  EXPECT_EQ(files(), 3u);
}

TEST_F(Outputs, StagesRanksAndBatchThatCannotBeAreReportedTogether) {
  std::vector<std::string> wrong{"simulate", path("s.yaml"), "--set", "layout.pipeline=8", "--set",
                                       "schedule.global_batch=9"};
  // Eight stages of four layers; eight ranks on two GPUs; data is to be derived and cannot be.
  for (const std::string batch : {"micro_batch 2; allowed", "micro_batch 2 x data 3 = 6; allowed"}) {
    refused(wrong, "8 stages are more than the model's 4");
    refused(wrong, "layout.data: ");
    refused(wrong, "the cluster's 2 GPUs");
    refused(wrong, "9 is not divisible by " + batch);
    wrong.insert(wrong.end(), {"--set", "layout.data=3"});
  }
}

TEST_F(Outputs, AMachineWithoutMeasuredRatesIsRefusedWithTheCommandThatMeasures) {
  std::string profile = text_of(path("box.yaml"));
  const std::size_t at = profile.find("\npeak_flops");
  ASSERT_NE(at, std::string::npos);
  profile.replace(at, profile.find('\n', at + 1) - at, "\npeak_flops: {}");
  std::ofstream(path("box.yaml")) << profile;
  const std::string s = path("s.yaml");
  for (const std::vector<std::string>& args : {std::vector<std::string>{"simulate", s},
                                               {"execute", s, "--out", path("run")},
                                               {"confirm", s, "--baseline", "a:", "--case", "b: run.seed=2"}}) {
    refused(args, "(" + path("box.yaml") + ") has no measured rates yet; run `slipway calibrate " + s +
                      " --measure -o M.yaml`");
  }
  EXPECT_EQ(files(), 3u);
}

}  // namespace
}  // namespace slipway
