#include "schedules/catalogue/schedule_csv.h"

#include <gtest/gtest.h>

#include <sstream>

#include "schedules/check/actions.h"

namespace slipway::test {
namespace {

ActionLists read(const std::string& text) {
  std::istringstream in(text);
  return read_schedule_csv(in, "own.csv");
}

std::string error_of(const std::string& text) {
  try {
    read(text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "no error";
}

TEST(ScheduleCsv, WritesWhatItReadsForEveryScheduleAndShape) {
  for (const Schedule& schedule : all_schedules()) {
    for (const int p : {1, 2, 4}) {
      for (const int m : {4, 8}) {
        const ScheduleShape shape{.pipeline = p, .chunks = schedule.default_chunks, .micro_batches = m};
        if (schedule.refuse(shape)) continue;
        const ActionLists lists = schedule.actions(shape);
        std::ostringstream out;
        write_schedule_csv(out, lists);
        EXPECT_EQ(read(out.str()), lists) << schedule.name;
      }
    }
  }
}

// The form that Python's csv.writer gives PyTorch's _dump_csv: CRLF ends, empty cells where a rank idles.
TEST(ScheduleCsv, ReadsPyTorchFilesWithIdleCellsAndSplitBackwards) {
  const ActionLists lists = read("0F0,0F1,,0I0,0W0,0B1\r\n,1F0,1B0,1F1,1B1,\r\n");
  ASSERT_EQ(lists.size(), 2U);
  EXPECT_EQ(lists[0], (std::vector<Action>{{Pass::forward, 0, 0},
                                           {Pass::forward, 0, 1},
                                           {Pass::input_grad, 0, 0},
                                           {Pass::weight_grad, 0, 0},
                                           {Pass::backward, 0, 1}}));
  EXPECT_EQ(lists[1].size(), 4U);
}

TEST(ScheduleCsv, ReadsWhatASpreadsheetMarkedAsUtf8) {
  EXPECT_EQ(read("\xEF\xBB\xBF"
                 "0F0,0B0\n"),
            read("0F0,0B0\n"));
}

TEST(ScheduleCsv, ReadsPairsAndDropsCommunicationThatFits) {
  const ActionLists lists = read(
      "0UNSHARD,0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,(0F2;0B0)OVERLAP_F_B,0SEND_F2,0B1,0B2,0REDUCE_GRAD,0RESHARD\n"
      "1RECV_F0,1F0,1B0,1SEND_B0,1F1,1B1,1F2,1B2\n");
  ASSERT_EQ(lists[0].size(), 6U);
  EXPECT_EQ(lists[0][2], (Action{Pass::forward, 0, 2, 0, true}));
  EXPECT_EQ(lists[0][3], (Action{Pass::backward, 0, 0}));
  std::ostringstream out;
  write_schedule_csv(out, lists);
  EXPECT_NE(out.str().find("0F1,(0F2;0B0)OVERLAP_F_B,0B1"), std::string::npos) << out.str();
}

TEST(ScheduleCsv, RefusesCommunicationThatDoesNotFitThePassesByPlace) {
  const std::string error = error_of("0SEND_F0,0F0,0B0\n1RECV_F0,1F0,1B0\n");
  EXPECT_NE(error.find("own.csv:1: cell 1 '0SEND_F0' sends what no pass before it"), std::string::npos) << error;
  EXPECT_NE(error_of("0F0,0B0\n1F0,1RECV_F0,1B0\n").find("own.csv:2: cell 2 '1RECV_F0' receives"), std::string::npos);
  EXPECT_NE(error_of("0F0,0REDUCE_GRAD,0B0\n").find("move it behind the last backward"), std::string::npos);
  EXPECT_NE(error_of("0F0,0F1,0B0,0REDUCE_GRAD,0B1\n").find("before the last backward"), std::string::npos);
}

// Found by the fuzzer: written, such a rank was gone.
TEST(ScheduleCsv, RefusesARowThatOnlyCommunicates) {
  EXPECT_NE(error_of("0F0,0B0\n,1UNSHARD,\n").find("own.csv:2: the row has communication alone"), std::string::npos);
}

TEST(ScheduleCsv, RefusesPairsThatAreNone) {
  for (const std::string cell : {"(0F1;0F0)OVERLAP_F_B", "(0F0;0B0)OVERLAP_F_B", "(0F1;2B1)OVERLAP_F_B",
                                 "(0F1)OVERLAP_F_B", "(0F1;0B0)", "(0F1;0W0)OVERLAP_F_B", "(0F1;0B0;0W0)OVERLAP_F_B",
                                 "(0F1;0B0)OVERLAP_F_B0", "((0F1;0B0)OVERLAP_F_B;0W0)OVERLAP_F_B"})
    EXPECT_NE(error_of("0F0," + cell).find("own.csv:1: cell 2 '" + cell + "' is not a pair"), std::string::npos)
        << error_of("0F0," + cell);
}

TEST(ScheduleCsv, DropsEmptyRowsAtTheEndAndRefusesOthers) {
  const ActionLists two = read("0F0,0B0\n1F0,1B0\n");
  for (const std::string tail : {"\n", "\r\n", "\n\n  \n", ",,,\n", ",,\r\n,,\r\n"})
    EXPECT_EQ(read("0F0,0B0\n1F0,1B0\n" + tail), two) << tail;
  EXPECT_EQ(read("0F0,0B0\n1F0,1B0"), two) << "no end of the last line";
  EXPECT_NE(error_of("0F0,0B0\n\n1F0,1B0\n").find("own.csv:2: the row is empty"), std::string::npos);
  EXPECT_NE(error_of(",,\n0F0,0B0\n").find("own.csv:1: the row is empty"), std::string::npos);
  EXPECT_NE(error_of("\n\n").find("the file is empty"), std::string::npos);
}

TEST(ScheduleCsv, RefusesWhatIsNoAction) {
  for (const std::string cell : {"F0", "0F", "0X1", "-1F0", "0F1x", "0F99999999999", "0F1;0B0)OVERLAP_F_B"}) {
    EXPECT_NE(error_of("0F0," + cell).find("own.csv:1: cell 2 '" + cell + "'"), std::string::npos) << error_of(cell);
  }
  EXPECT_NE(error_of("").find("empty"), std::string::npos);
}

TEST(ScheduleCsv, CannotSayARecomputationOrASlice) {
  std::ostringstream out;
  EXPECT_THROW(write_schedule_csv(out, {{{Pass::recompute, 0, 0}}}), std::invalid_argument);
  EXPECT_THROW(write_schedule_csv(out, {{{Pass::forward, 0, 0, 1}}}), std::invalid_argument);
}

// ---- Defects of lists that parse ----

constexpr ScheduleShape two_by_two{.pipeline = 2, .micro_batches = 2};

TEST(ActionLists, AMissingBackwardIsNamedAndMarkedInTheGrid) {
  const ActionLists lists = read("0F0,0F1,0B0,0B1\n1F0,1B0,1F1\n");
  const auto defects = check_actions(lists, two_by_two);
  ASSERT_EQ(defects.size(), 1U);
  const std::string text = describe(lists, defects.front());
  EXPECT_NE(text.find("micro-batch 1 of stage 1 has no backward; add it (or I and W), 1B1 to the row of rank 1"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("*1B1?*"), std::string::npos) << text;
}

TEST(ActionLists, ADoubledForwardIsMarkedAtBothPlaces) {
  const ActionLists lists = read("0F0,0F1,0F0,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  const auto defects = check_actions(lists, two_by_two);
  ASSERT_EQ(defects.size(), 1U);
  EXPECT_EQ(defects.front().culprits, (std::vector<GridCell>{{0, 0}, {0, 2}}));
  EXPECT_NE(defects.front().message.find("0F0 appears 2 times"), std::string::npos);
}

TEST(ActionLists, AStageOnTheWrongRankABackwardFirstAndABeyondTheLastMicroBatchAreNamed) {
  const auto first_message = [](const std::string& csv) {
    const auto defects = check_actions(read(csv), two_by_two);
    return defects.empty() ? "none" : defects.front().message;
  };
  EXPECT_NE(first_message("0F0,1F1,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n").find("move it"), std::string::npos);
  EXPECT_NE(first_message("0F0,0F1,0B0,0B1\n1F0,1B0,1B1,1F1\n").find("1B1 stands before 1F1"), std::string::npos);
  EXPECT_NE(first_message("0F0,0F1,0B0,0B1,0F2\n1F0,1B0,1F1,1B1\n").find("that is not among 0 to 1"),
            std::string::npos);
  EXPECT_NE(first_message("0F0,0F1,0B0,0B1\n").find("1 rows"), std::string::npos);
  EXPECT_NE(first_message("0F0,0F1,0B0,0I0,0W0,0B1\n1F0,1B0,1F1,1B1\n").find("split"), std::string::npos);
}

// A bundle can hold them; a schedule in a CSV file cannot say them.
TEST(ActionLists, ANumberBelowZeroIsNamed) {
  for (int Action::*number : {&Action::stage, &Action::micro_batch, &Action::slice}) {
    ActionLists lists = read("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
    lists[1][2].*number = -1;
    const auto defects = check_actions(lists, two_by_two);
    ASSERT_EQ(defects.size(), 1U);
    EXPECT_NE(defects.front().message.find("that is not among 0 to "), std::string::npos) << defects.front().message;
    EXPECT_EQ(defects.front().culprits, (std::vector<GridCell>{{1, 2}}));
  }
}

TEST(ActionLists, AWrongNumberInManyCellsIsOneDefectThatMarksThemAll) {
  const auto stages = check_actions(read("0F0,0F1,0B0,0B1\n70F0,70B0,70F1,70B1\n"), two_by_two);
  ASSERT_EQ(stages.size(), 1U);
  EXPECT_NE(stages.front().message.find("70F0 and 3 others have a stage that is not among 0 to 1; correct it"),
            std::string::npos)
      << stages.front().message;
  EXPECT_EQ(stages.front().culprits.size(), 4U);
  const auto micro_batches = check_actions(read("0F0,0F90,0B0,0B90\n1F0,1B0,1F1,1B1\n"), two_by_two);
  ASSERT_EQ(micro_batches.size(), 1U);
  EXPECT_NE(micro_batches.front().message.find("0F90 and 1 other action have a micro-batch that is not among 0 to 1;"),
            std::string::npos)
      << micro_batches.front().message;
}

TEST(ActionLists, APairOfOneMicroBatchIsNone) {
  ActionLists lists = read("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  lists[0][1].with_next = true;  // 0F1 with 0B0
  EXPECT_TRUE(check_actions(lists, two_by_two).empty());
  lists[0][1].with_next = false, lists[1][0].with_next = true;  // 1F0 with 1B0, which begins when 1F0 has ended
  const auto defects = check_actions(lists, two_by_two);
  ASSERT_EQ(defects.size(), 1U);
  EXPECT_NE(defects.front().message.find("1F0 is no pair with the action behind it"), std::string::npos);
}

// Rank 0 waits for 0B0 before it sends micro-batch 1; rank 1 waits for micro-batch 1 before it makes the gradient of 0.
TEST(ActionLists, ACircleBetweenRowsIsFoundAndItsHeadsAreMarked) {
  const ActionLists lists = read("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n");
  const auto defects = check_actions(lists, two_by_two);
  ASSERT_EQ(defects.size(), 1U);
  EXPECT_EQ(describe(lists, defects.front()),
            "the rows wait for each other in a circle at 0B0 on rank 0, 1F1 on rank 1; an action must not "
            "stand before "
            "one that it needs through another row\n"
            "rank 0 │  0F0    .   *0B0*  0F1   0B1\n"
            "rank 1 │   .    1F0  *1F1*  1B0   1B1\n");
}

}  // namespace
}  // namespace slipway::test
