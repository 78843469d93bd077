#include "exec/transport/cpu/transport_gloo.h"
#include "scenarios/commands/execute/free_port.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <thread>

namespace slipway::test {
namespace {

// Runs `body` as every member of a group of `size` threads, each with its own connections.
void on_members(int size, const std::function<void(Transport&, int)>& body) {
  const int port = free_port();
  Group group{.id = 3, .name = "test", .ranks = {}};
  for (int rank = 0; rank < size; ++rank) group.ranks.push_back(rank + 10);
  std::vector<std::thread> threads;
  std::vector<std::unique_ptr<StoreHost>> stores(size);
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      RankEnvironment at;
      at.rank = rank;
      at.world = size;
      at.store_port = port;
      auto& store = stores[rank];
      store = std::make_unique<StoreHost>(at, 30);
      const auto transport = connect_gloo(*store, group, rank + 10, "127.0.0.1");
      body(*transport, rank);
      transport->barrier();
      transport->shutdown();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

at::Tensor values_of(int rank, std::int64_t rows, at::ScalarType type) {
  return at::arange(rows * 3, at::TensorOptions().dtype(type)).reshape({rows, 3}) * (rank + 1) + rank;
}

class TransportOf : public testing::TestWithParam<std::tuple<int, at::ScalarType>> {
 protected:
  int members() const { return std::get<0>(GetParam()); }
  at::ScalarType type() const { return std::get<1>(GetParam()); }
  at::Tensor sum(std::int64_t rows) const {
    at::Tensor total = at::zeros({rows, 3}, type());
    for (int rank = 0; rank < members(); ++rank) total += values_of(rank, rows, type());
    return total;
  }
};

TEST_P(TransportOf, AllReduceLeavesTheSumOfAllMembersOnEveryMember) {
  on_members(members(), [&](Transport& transport, int rank) {
    at::Tensor tensor = values_of(rank, 5, type());
    transport.all_reduce(tensor);
    EXPECT_TRUE(at::equal(tensor, sum(5)));
  });
}

TEST_P(TransportOf, AllGatherStacksPartsInMemberOrder) {
  on_members(members(), [&](Transport& transport, int rank) {
    at::Tensor whole = at::empty({members() * 2, 3}, type());
    transport.all_gather(whole, values_of(rank, 2, type()));
    for (int other = 0; other < members(); ++other) {
      EXPECT_TRUE(at::equal(whole.narrow(0, other * 2, 2), values_of(other, 2, type())));
    }
  });
}

TEST_P(TransportOf, ReduceScatterGivesEachMemberItsRowsOfTheSum) {
  on_members(members(), [&](Transport& transport, int rank) {
    const at::Tensor whole = values_of(rank, members() * 4, type());
    const at::Tensor before = whole.clone();
    at::Tensor part = at::empty({4, 3}, type());
    transport.reduce_scatter(part, whole);
    EXPECT_TRUE(at::equal(part, sum(members() * 4).narrow(0, rank * 4, 4)));
    EXPECT_TRUE(at::equal(whole, before)) << "the input must stay as it was";
  });
}

// ZeRO 1 reduces a bucket into its own slice, and gathers weights from theirs.
TEST_P(TransportOf, APartMayBeTheMembersOwnRowsOfTheWhole) {
  on_members(members(), [&](Transport& transport, int rank) {
    at::Tensor reduced = values_of(rank, members() * 4, type()), mine = reduced.narrow(0, rank * 4, 4);
    transport.reduce_scatter(mine, reduced);
    EXPECT_TRUE(at::equal(mine, sum(members() * 4).narrow(0, rank * 4, 4)));
    at::Tensor whole = at::zeros({members() * 2, 3}, type());
    const at::Tensor own = whole.narrow(0, rank * 2, 2).copy_(values_of(rank, 2, type()));
    transport.all_gather(whole, own);
    for (int other = 0; other < members(); ++other)
      EXPECT_TRUE(at::equal(whole.narrow(0, other * 2, 2), values_of(other, 2, type())));
  });
}

// Two around the ring one after the other, of more bytes than sockets buffer: neither waits for the other's receive.
TEST_P(TransportOf, ShiftBringsThePartOfTheMemberBefore) {
  on_members(members(), [&](Transport& transport, int rank) {
    const std::int64_t rows = 1 << 19;
    at::Tensor first = at::empty({rows, 3}, type()), second = at::empty({rows, 3}, type());
    transport.shift(first, values_of(rank, rows, type()));
    transport.shift(second, first);
    EXPECT_TRUE(at::equal(first, values_of((rank + members() - 1) % members(), rows, type())));
    EXPECT_TRUE(at::equal(second, values_of((rank + members() - 2) % members(), rows, type())));
  });
}

// Member m sends (m + 2·n) % 4 rows to member n, mostly none to some; each row names its sender and receiver.
TEST_P(TransportOf, AllToAllBringsEachMemberTheRowsThatOthersHaveForIt) {
  on_members(members(), [&](Transport& transport, int rank) {
    const int size = members();
    const auto rows_for = [](int from, int to) { return std::int64_t{(from + 2 * to) % 4}; };
    const auto row = [&](int from, int to, std::int64_t rows) { return at::full({rows, 3}, 10 * from + to, type()); };
    std::vector<std::int64_t> sent_rows, received_rows;
    std::vector<at::Tensor> sent, expected;
    for (int other = 0; other < size; ++other) {
      sent_rows.push_back(rows_for(rank, other));
      received_rows.push_back(rows_for(other, rank));
      sent.push_back(row(rank, other, sent_rows.back()));
      expected.push_back(row(other, rank, received_rows.back()));
    }
    at::Tensor received = at::zeros_like(at::cat(expected));
    transport.all_to_all(received, at::cat(sent), received_rows, sent_rows);
    EXPECT_TRUE(at::equal(received, at::cat(expected)));
  });
}

TEST_P(TransportOf, SumsHaveTheSameBitsEveryTime) {
  at::Tensor first[8], second[8];
  for (auto* result : {first, second}) {
    on_members(members(), [&](Transport& transport, int rank) {
      at::Tensor tensor = at::sin(at::arange(100000, type()) * (0.1 + rank));
      at::Tensor part = at::empty({100000 / members()}, type());
      transport.reduce_scatter(part, tensor.narrow(0, 0, part.numel() * members()));
      transport.all_reduce(tensor);
      result[rank] = at::cat({tensor, part});
    });
  }
  for (int rank = 0; rank < members(); ++rank) EXPECT_TRUE(at::equal(first[rank], second[rank]));
}

TEST_P(TransportOf, MessagesOfOnePairArriveInTheOrderSent) {
  on_members(members(), [&](Transport& transport, int rank) {
    if (rank == 0) {
      for (int i = 0; i < 3; ++i) transport.send(values_of(i, 4, type()), 1);
    } else if (rank == 1) {
      for (int i = 0; i < 3; ++i) {
        at::Tensor tensor = at::empty({4, 3}, type());
        transport.receive(tensor, 0);
        EXPECT_TRUE(at::equal(tensor, values_of(i, 4, type())));
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(MembersAndTypes, TransportOf,
                         testing::Combine(testing::Values(2, 3, 4), testing::Values(at::kFloat, at::kDouble)));

TEST(Transport, APeerThatLeavesBreaksTheOperationWithTheCommunicatorsName) {
  on_members(1, [](Transport& transport, int) { transport.barrier(); });  // a group of one connects
  const int port = free_port();
  const Group group{.id = 0, .name = "pp.forward.0-1", .ranks = {0, 1}};
  const auto member = [&](int rank, const std::function<void(Transport&)>& body) {
    RankEnvironment at;
    at.rank = rank;
    at.world = 2;
    at.store_port = port;
    const StoreHost store(at, 30);
    body(*connect_gloo(store, group, rank, "127.0.0.1"));
  };
  std::thread leaves([&] { member(1, [](Transport&) {}); });
  member(0, [&](Transport& transport) {
    at::Tensor tensor = at::empty({4});
    try {
      transport.receive(tensor, 1);
      ADD_FAILURE() << "received from nobody";
    } catch (const TransportError& error) {
      EXPECT_NE(std::string(error.what()).find("receive on communicator pp.forward.0-1"), std::string::npos);
    }
  });
  leaves.join();
}

}  // namespace
}  // namespace slipway::test
