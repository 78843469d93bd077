#include "scenarios/terminal_timeline.h"

#include <gmock/gmock.h>

namespace slipway {
namespace {

using testing::HasSubstr;

std::string cells(const std::string& text) {
  const std::string bar = "│";
  const std::size_t from = text.find(bar) + bar.size();
  return text.substr(from, text.find(bar, from) - from);
}

TEST(TerminalTimeline, AColumnIsASliceOfTimeAndTheLetterWhatRanInIt) {
  // 12 s on 12 columns: name "rank 0" and three more characters make 21.
  const TimelinePicture picture{{{"rank 0", {{0, 3, 'F'}, {5, 11, 'B'}, {11, 12, 'O'}}}}, 0, 12, 1};
  EXPECT_EQ(cells(draw(picture, 21)), "FFF··BBBBBBO");
}

TEST(TerminalTimeline, ASliceWithSeveralTasksShowsTheLongest) {
  const TimelinePicture picture{{{"rank 0", {{0, 0.4, 'F'}, {0.4, 1, 'B'}, {9.7, 10, 'O'}}}}, 0, 10, 1};
  EXPECT_EQ(cells(draw(picture, 19)), "B·········");
}

TEST(TerminalTimeline, ManyTasksInEachSliceTakeTurnsInProportionToTheirTime) {
  TimelineRow row{"rank 0", {}};
  for (int i = 0; i < 300; ++i) {  // ten pairs per column: one third forward, two thirds backward
    row.spans.push_back({3.0 * i, 3.0 * i + 1, 'F'});
    row.spans.push_back({3.0 * i + 1, 3.0 * i + 3, 'B'});
  }
  const std::string text = cells(draw({{row}, 0, 900, 1}, 39));
  EXPECT_EQ(std::count(text.begin(), text.end(), 'F'), 10);
  EXPECT_EQ(std::count(text.begin(), text.end(), 'B'), 20);
}

TEST(TerminalTimeline, TellsHowLongAColumnIsWhatLettersMeanAndHowManyRanksAreHidden) {
  const std::string text = draw({{{"rank 0", {{0, 5, 'F'}}}}, 0, 10, 9}, 19);
  EXPECT_THAT(text, HasSubstr("one column = 1.00 s, F forward, · idle"));
  EXPECT_THAT(text, HasSubstr("8 ranks not shown"));
  EXPECT_THAT(text, testing::Not(HasSubstr("backward")));
}

TEST(TerminalTimeline, OfAMeasuredTraceOnlyComputeLanesAndTheAskedStepAreDrawn) {
  Trace trace;
  trace.records = {{0, 0, "compute", "0F0", "forward", 0, 1, 0, 0, 0, -1},
                   {1, 0, "compute", "0F0", "forward", 10, 15, 0, 0, 0, -1},
                   {1, 0, "dp", "x", "all-reduce", 15, 30, 0, 0, 0, 2},
                   {1, 0, "compute", "opt", "optimizer", 15, 20, 0, 0, 0, -1}};
  const TimelinePicture picture = picture_of(trace, Layout{}, 1);
  EXPECT_EQ(picture.begin_s, 10);
  EXPECT_EQ(picture.end_s, 20);
  EXPECT_EQ(cells(draw(picture, 19)), "FFFFFOOOOO");
}

TEST(TerminalTimeline, ABigLayoutShowsTheFirstRankOfEveryPipelineRank) {
  Layout layout;
  layout.tensor = 8;
  layout.pipeline = 4;
  const TimelinePicture picture = picture_of(Trace{}, layout, 0);
  ASSERT_EQ(picture.rows.size(), 4u);
  EXPECT_EQ(picture.rows[1].name, "rank 8");
  EXPECT_EQ(picture.ranks, 32);
}

TEST(TerminalTimeline, EveryKindOfComputeTaskHasALetter) {
  for (const char* kind : {"forward", "backward", "input-grad", "weight-grad", "recompute", "optimizer",
                           "grad-norm", "tied-grad"}) {
    EXPECT_NE(letter_of_kind(kind), '?') << kind;
  }
}

}  // namespace
}  // namespace slipway
