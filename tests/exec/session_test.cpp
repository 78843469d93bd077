#include "exec/rank/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/support/memory_store.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;

TEST(WaitForProcesses, NamesTheRankThatNeverCame) {
  MemoryStore map;
  const auto store = map.connect();
  for (const int rank : {0, 2}) store->set(process_key(rank), to_text(this_process()));
  try {
    wait_for_processes(*store, 3, 0.2);
    ADD_FAILURE() << "rank 1 is missing";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 1 did not join the run"));
  }
}

// Each comes less than a second after the one before it, but the last one long after the first second.
TEST(WaitForProcesses, GivesAllRanksTogetherOneTimeLimit) {
  MemoryStore map;
  std::thread others([store = map.connect()] {
    for (int rank = 0; rank < 4; ++rank) {
      store->set(process_key(rank), to_text(this_process()));
      std::this_thread::sleep_for(std::chrono::milliseconds(700));
    }
  });
  try {
    wait_for_processes(*map.connect(), 4, 1);
    ADD_FAILURE() << "rank 3 came after more than two seconds";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("did not join the run within 1 s"));
  }
  others.join();
}

TEST(WaitForProcesses, ALostStoreIsNoMissingRank) {
  MemoryStore map;
  map.lose();
  EXPECT_THROW(wait_for_processes(*map.connect(), 2, 1), StoreLost);
}

}  // namespace
}  // namespace slipway::test
