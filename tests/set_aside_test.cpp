// A run that starts in the folder of an earlier one: what becomes of that one's files, whatever happens when.
#include "scenarios/execution/set_aside.h"

#include <gmock/gmock.h>

#include <map>

#include "exec/checkpoint_folder.h"
#include "exec/run_files.h"
#include "tests/command_test.h"

namespace slipway {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class AnEarlierRun : public CommandTest {
 protected:
  void SetUp() override {
    CommandTest::SetUp();
    folder_ = path("run");
    for (const int step : {2, 4, 8}) write(manifest_path(checkpoint_path(folder_, step)), "manifest");
    for (const auto& file : {bundle_path(folder_), records_path(folder_, 0), records_path(folder_, 1),
                             trace_path(folder_), losses_csv_path(folder_)})
      write(file, "earlier");
    write(losses_path(folder_), "0 8 5.5\n3 32 5.25\n4 40 5.125\n");
    before_ = contents();
  }
  static void write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(file).parent_path());
    std::ofstream(file) << text;
  }
  std::map<std::string, std::string> contents() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_))
      if (entry.is_regular_file()) files[entry.path().string()] = text_of(entry.path().string());
    return files;
  }
  std::string folder_;
  std::map<std::string, std::string> before_;
};

TEST_F(AnEarlierRun, IsWholeAgainWhereTheStartOfTheNextOneFails) {
  for (const std::optional<int> from : {std::optional<int>(), std::optional(4)}) {
    {
      const SetAside aside(folder_, 0, 1, from);
      EXPECT_FALSE(std::filesystem::exists(trace_path(folder_)));
      write(records_path(folder_, 0), "a task of the first step");
    }
    EXPECT_EQ(contents(), before_);
  }
}

TEST_F(AnEarlierRun, IsWholeAgainAfterAStartThatWasKilled) {
  const std::string copy = path("copy");
  {
    const SetAside killed(folder_, 0, 1, std::nullopt);
    std::filesystem::copy(folder_, copy, std::filesystem::copy_options::recursive);  // as a kill leaves it
  }
  std::filesystem::remove_all(folder_);
  std::filesystem::rename(copy, folder_);
  EXPECT_FALSE(std::filesystem::exists(trace_path(folder_)));
  { const SetAside next(folder_, 0, 1, std::nullopt); }
  EXPECT_EQ(contents(), before_);
}

TEST_F(AnEarlierRun, IsSafeFromASecondStartWhileTheFirstIsAtWork) {
  const SetAside first(folder_, 0, 1, std::nullopt);
  EXPECT_THROW(restore_killed_start(folder_), std::runtime_error);
  EXPECT_THROW(SetAside(folder_, 0, 1, std::nullopt), std::runtime_error);
  EXPECT_FALSE(std::filesystem::exists(trace_path(folder_)));
}

// A folder stands where its trace belongs: that is the error each time, and no lock is left behind.
TEST_F(AnEarlierRun, ThatCannotBePutBackKeepsNobodyOut) {
  using Blocked = std::filesystem::filesystem_error;
  std::filesystem::remove(trace_path(folder_));
  write(trace_path(folder_) + "/in-the-way", "");
  write(trace_path(folder_ + "/replaced-0"), "earlier");
  for (int time = 0; time < 2; ++time) {
    EXPECT_THROW(restore_killed_start(folder_), Blocked);
    EXPECT_THROW(SetAside(folder_, 0, 1, std::nullopt), Blocked);
  }
  EXPECT_EQ(text_of(trace_path(folder_ + "/replaced-0")), "earlier");
}

TEST_F(AnEarlierRun, KeepsEachCourseThatIsLeft) {
  for (int time = 0; time < 2; ++time) {
    write(manifest_path(checkpoint_path(folder_, 8)), "course " + std::to_string(time));
    SetAside aside(folder_, 0, 1, 4);
    aside.drop();
  }
  EXPECT_EQ(text_of(manifest_path(checkpoint_path(folder_, 8) + ".abandoned")), "course 0");
  EXPECT_EQ(text_of(manifest_path(checkpoint_path(folder_, 8) + ".abandoned-2")), "course 1");
}

// Its checkpoints among them, which --resume latest would take for the new run's.
TEST_F(AnEarlierRun, IsGoneOnceTheNextOneHasDoneAStep) {
  {
    SetAside aside(folder_, 0, 1, std::nullopt);
    write(losses_path(folder_), "0 8 9.5\n");
    aside.drop();
  }
  EXPECT_THAT(complete_checkpoints(folder_), IsEmpty());
  EXPECT_THAT(contents(), ElementsAre(std::pair(losses_path(folder_), "0 8 9.5\n")));
}

TEST_F(AnEarlierRun, ThatIsGoneOnWithKeepsWhatIsBeforeTheCheckpointAndNoLatestIsOfAnotherCourse) {
  {
    SetAside aside(folder_, 0, 1, 4);
    EXPECT_THAT(aside.abandoned(), ElementsAre(checkpoint_path(folder_, 8) + ".abandoned"));
    EXPECT_EQ(text_of(losses_path(folder_)), "0 8 5.5\n3 32 5.25\n");
    aside.drop();
  }
  EXPECT_THAT(complete_checkpoints(folder_), ElementsAre(2, 4));
  EXPECT_EQ(resolve_checkpoint(checkpoint_path(folder_, 8) + ".abandoned", folder_), checkpoint_path(folder_, 8) + ".abandoned");
  EXPECT_FALSE(std::filesystem::exists(trace_path(folder_)));
}

// Ranks that joined: each its own, in any order.
TEST_F(AnEarlierRun, IsSetAsideByEachRankForItself) {
  {
    const SetAside second(folder_, 1, 1, std::nullopt);
    EXPECT_TRUE(std::filesystem::exists(trace_path(folder_)));
    const SetAside first(folder_, 0, 0, std::nullopt);
    EXPECT_FALSE(std::filesystem::exists(trace_path(folder_)));
  }
  EXPECT_EQ(contents(), before_);
}

}  // namespace
}  // namespace slipway
