// Ranks of one process exchange tensors in memory: the results of a network, in member order. On a device with queues
// nothing is read before it is written, nor written while it is read.
#include "exec/transport/local_transport.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <mutex>
#include <thread>

namespace slipway::test {
namespace {

// Runs `body` as every member of a group, each on a thread of its own.
void on_members(int size, const std::function<void(Transport&, int)>& body, DeviceQueue* queue = nullptr) {
  LocalGroups groups;
  Group group{.id = 3, .name = "test", .ranks = {}};
  for (int member = 0; member < size; ++member) group.ranks.push_back(member + 4);
  std::vector<std::thread> threads;
  for (int member = 0; member < size; ++member) {
    threads.emplace_back([&, member] {
      if (queue) queue->begin_lane();
      const auto transport = groups.join(group, member + 4, queue);
      body(*transport, member);
      transport->barrier();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

at::Tensor values_of(int member, std::int64_t rows) {
  return at::sin(at::arange(rows * 3, at::kFloat).reshape({rows, 3}) * (0.1 + member));
}

at::Tensor sum_in_member_order(int size, std::int64_t rows) {
  at::Tensor sum = values_of(0, rows);
  for (int member = 1; member < size; ++member) sum += values_of(member, rows);
  return sum;
}

class LocalTransportOf : public testing::TestWithParam<int> {};

// To the last bit: the rounding is that of one sum over the members, whatever part each of them sums.
TEST_P(LocalTransportOf, AllReduceLeavesTheSumInMemberOrderOnEveryMember) {
  on_members(GetParam(), [](Transport& transport, int member) {
    for (const std::int64_t rows : {1, 2, 1000}) {
      at::Tensor tensor = values_of(member, rows);
      transport.all_reduce(tensor);
      EXPECT_TRUE(at::equal(tensor, sum_in_member_order(GetParam(), rows))) << rows;
    }
  });
}

TEST_P(LocalTransportOf, AllGatherStacksPartsInMemberOrder) {
  on_members(GetParam(), [](Transport& transport, int member) {
    at::Tensor whole = at::empty({GetParam() * 2, 3}, at::kFloat);
    transport.all_gather(whole, values_of(member, 2));
    for (int other = 0; other < GetParam(); ++other)
      EXPECT_TRUE(at::equal(whole.narrow(0, other * 2, 2), values_of(other, 2)));
  });
}

TEST_P(LocalTransportOf, ReduceScatterGivesEachMemberItsRowsOfTheSumAndLeavesTheInput) {
  on_members(GetParam(), [](Transport& transport, int member) {
    const at::Tensor whole = values_of(member, GetParam() * 4), before = whole.clone();
    at::Tensor part = at::empty({4, 3}, at::kFloat);
    transport.reduce_scatter(part, whole);
    EXPECT_TRUE(at::equal(part, sum_in_member_order(GetParam(), GetParam() * 4).narrow(0, member * 4, 4)));
    EXPECT_TRUE(at::equal(whole, before));
  });
}

// ZeRO 1 reduces a bucket into its own slice, and gathers weights from theirs.
TEST_P(LocalTransportOf, APartMayBeTheMembersOwnRowsOfTheWhole) {
  on_members(GetParam(), [](Transport& transport, int member) {
    at::Tensor reduced = values_of(member, GetParam() * 4), mine = reduced.narrow(0, member * 4, 4);
    transport.reduce_scatter(mine, reduced);
    EXPECT_TRUE(at::equal(mine, sum_in_member_order(GetParam(), GetParam() * 4).narrow(0, member * 4, 4)));
    at::Tensor whole = at::zeros({GetParam() * 2, 3}, at::kFloat);
    const at::Tensor own = whole.narrow(0, member * 2, 2).copy_(values_of(member, 2));
    transport.all_gather(whole, own);
    for (int other = 0; other < GetParam(); ++other)
      EXPECT_TRUE(at::equal(whole.narrow(0, other * 2, 2), values_of(other, 2)));
  });
}

TEST_P(LocalTransportOf, ShiftBringsTheTensorOfTheMemberBefore) {
  on_members(GetParam(), [](Transport& transport, int member) {
    at::Tensor first = at::empty({4, 3}, at::kFloat), second = at::empty({4, 3}, at::kFloat);
    transport.shift(first, values_of(member, 4));
    transport.shift(second, first);
    EXPECT_TRUE(at::equal(first, values_of((member + GetParam() - 1) % GetParam(), 4)));
    EXPECT_TRUE(at::equal(second, values_of((member + GetParam() - 2) % GetParam(), 4)));
  });
}

// Member m sends (m + 2·n) % 4 rows to member n, mostly none to some; each row names its sender and receiver.
TEST_P(LocalTransportOf, AllToAllBringsEachMemberTheRowsThatOthersHaveForIt) {
  on_members(GetParam(), [](Transport& transport, int member) {
    const int size = GetParam();
    const auto rows_for = [](int from, int to) { return std::int64_t{(from + 2 * to) % 4}; };
    const auto row = [](int from, int to, std::int64_t rows) {
      return at::full({rows, 3}, 10 * from + to, at::kFloat);
    };
    std::vector<std::int64_t> sent_rows, received_rows;
    std::vector<at::Tensor> sent, expected;
    for (int other = 0; other < size; ++other) {
      sent_rows.push_back(rows_for(member, other));
      received_rows.push_back(rows_for(other, member));
      sent.push_back(row(member, other, sent_rows.back()));
      expected.push_back(row(other, member, received_rows.back()));
    }
    at::Tensor received = at::zeros_like(at::cat(expected));
    transport.all_to_all(received, at::cat(sent), received_rows, sent_rows);
    EXPECT_TRUE(at::equal(received, at::cat(expected)));
  });
}

TEST_P(LocalTransportOf, MessagesOfOnePairArriveInTheOrderSentAndPairsDoNotMeet) {
  on_members(GetParam(), [](Transport& transport, int member) {
    const int next = (member + 1) % GetParam(), before = (member + GetParam() - 1) % GetParam();
    for (int i = 0; i < 3; ++i) {
      at::Tensor tensor = at::empty({4, 3}, at::kFloat);
      if (member % 2 == 0) transport.send(values_of(10 * member + i, 4), next);
      if (before % 2 != 0) continue;
      transport.receive(tensor, before);
      EXPECT_TRUE(at::equal(tensor, values_of(10 * before + i, 4)));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Members, LocalTransportOf, testing::Values(2, 4, 8));

TEST(LocalTransport, AMemberThatLeavesBreaksWhatTheOthersWaitForWithTheCommunicatorsName) {
  LocalGroups groups;
  const Group group{.id = 0, .name = "dp.0", .ranks = {0, 1}};
  auto leaves = groups.join(group, 0, nullptr);
  const auto stays = groups.join(group, 1, nullptr);
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    leaves.reset();
  });
  at::Tensor tensor = at::ones({4});
  try {
    stays->all_reduce(tensor);
    ADD_FAILURE() << "summed with nobody";
  } catch (const TransportError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("all-reduce on communicator dp.0 broke"));
  }
  EXPECT_THROW(stays->receive(tensor, 0), TransportError) << "a pair that meets only now";
  later.join();
}

// A device on which marks are numbers: it notes which thread waited for which mark.
class NotingDevice : public DeviceQueue {
 public:
  void begin_lane() override {}
  Mark mark() override { return std::make_shared<std::thread::id>(std::this_thread::get_id()); }
  void wait_for(const Mark& mark) override {
    const std::lock_guard lock(mutex_);
    ++waits_[{std::this_thread::get_id(), *std::static_pointer_cast<std::thread::id>(mark)}];
  }
  void finish(const Mark&) override { ADD_FAILURE() << "the host must not wait for the device"; }
  std::vector<std::int64_t> times_ns(const std::vector<Mark>& marks) override {
    return std::vector<std::int64_t>(marks.size());
  }
  std::map<std::pair<std::thread::id, std::thread::id>, int> waits() const { return waits_; }

 private:
  std::mutex mutex_;
  std::map<std::pair<std::thread::id, std::thread::id>, int> waits_;
};

// It waits before it reads what the others have written, and before it hands on what they have read.
TEST(LocalTransportOfADevice, EveryMemberWaitsForAllOthersAtEveryMeetingAndNeverOnTheHost) {
  NotingDevice device;
  on_members(
      3,
      [](Transport& transport, int member) {
        at::Tensor tensor = values_of(member, 4);
        transport.all_reduce(tensor);  // three meetings; the barrier at the end is one more
      },
      &device);
  const auto waits = device.waits();
  EXPECT_EQ(waits.size(), 6u) << "three members, each for two others";
  for (const auto& [who, times] : waits) EXPECT_EQ(times, 4);
}

TEST(LocalTransport, ARankThatIsNoMemberIsRefused) {
  LocalGroups groups;
  EXPECT_THROW(groups.join({.id = 0, .name = "dp.0", .ranks = {0, 1}}, 2, nullptr), std::logic_error);
}

TEST(Reach, SaysWhetherACommunicatorStaysInOneProcess) {
  EXPECT_EQ(reach_of({4, 5, 7}, 4), Reach::inside);
  EXPECT_EQ(reach_of({1, 5, 9}, 4), Reach::apart);
  EXPECT_EQ(reach_of({0, 1, 4, 5}, 4), Reach::mixed);
  EXPECT_EQ(reach_of({0, 1}, 1), Reach::apart);
}

}  // namespace
}  // namespace slipway::test
