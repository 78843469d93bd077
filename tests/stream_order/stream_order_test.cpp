// The checker of stream order finds planted races and nothing else, on clocks alone. ordered_device_test.cpp tests it
// on tensors.
#include "tests/stream_order/stream_order.h"

#include <gmock/gmock.h>

namespace slipway::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class TwoStreams : public testing::Test {
 protected:
  TwoStreams() { order.allocated(&block, 100, a); }

  void read(int stream, ByteRange part = {0, 100}) {
    order.use(stream, &block, part, StreamOrder::Access::read, "a read");
  }
  void write(int stream, ByteRange part = {0, 100}) {
    order.use(stream, &block, part, StreamOrder::Access::write, "a write");
  }

  StreamOrder order;
  const int a = order.new_stream(), b = order.new_stream();
  const char block = 0;
};

TEST_F(TwoStreams, AReadBehindTheMarkOfTheWriteIsOrdered) {
  write(a);
  order.wait_for(b, order.mark(a));
  read(b);
  EXPECT_THAT(order.races(), IsEmpty());
  EXPECT_GT(order.ordered(), 0);
}

TEST_F(TwoStreams, AReadThatWaitsForNothingIsARace) {
  write(a);
  order.mark(a);
  read(b);
  EXPECT_THAT(order.races(),
              ElementsAre(HasSubstr("a read on stream 2 reads what a write on stream 1 may not have written")));
}

TEST_F(TwoStreams, AMarkThatIsOlderThanTheWriteIsNoOrder) {
  const auto before = order.mark(a);
  write(a);
  order.wait_for(b, before);
  read(b);
  EXPECT_THAT(order.races(), ElementsAre(HasSubstr("may not have written")));
}

TEST_F(TwoStreams, AWriteMustBeBehindTheReadsOfOthers) {
  write(a);
  order.wait_for(b, order.mark(a));
  read(b);
  write(a);
  EXPECT_THAT(order.races(),
              ElementsAre(HasSubstr("a write on stream 1 writes what a read on stream 2 may not have read")));
}

TEST_F(TwoStreams, ReadsNeedNoOrderAmongThemselves) {
  write(a);
  order.wait_for(b, order.mark(a));
  read(b);
  read(a);
  EXPECT_THAT(order.races(), IsEmpty());
}

TEST_F(TwoStreams, PartsOfABlockThatDoNotOverlapNeedNoOrder) {
  order.wait_for(b, order.mark(a));
  write(a, {0, 50});
  write(b, {50, 100});
  EXPECT_THAT(order.races(), IsEmpty());
  read(a, {0, 51});
  EXPECT_THAT(order.races(), ElementsAre(HasSubstr("bytes 0 to 51 of 100")));
}

TEST_F(TwoStreams, AreOrderedThroughAThird) {
  const int c = order.new_stream();
  write(a);
  order.wait_for(c, order.mark(a));
  order.wait_for(b, order.mark(c));
  read(b);
  EXPECT_THAT(order.races(), IsEmpty());
}

TEST_F(TwoStreams, WhatTheHostHasWaitedForIsBehindEverybody) {
  write(a);
  order.finish(order.mark(a));
  read(b);
  EXPECT_THAT(order.races(), IsEmpty());
  order.use(order.new_stream(), &block, {0, 100}, StreamOrder::Access::write, "a write");
  EXPECT_THAT(order.races(), ElementsAre(HasSubstr("may not have read"))) << "not what came after";
}

// The block may be what its first stream gets next.
TEST_F(TwoStreams, ABlockThatIsFreedBeforeAnotherStreamsUseIsOverIsARace) {
  order.wait_for(b, order.mark(a));
  read(b);
  order.freed(&block);
  EXPECT_THAT(order.races(), ElementsAre(HasSubstr("memory is free for stream 1 before a read on stream 2 is over")));
}

TEST_F(TwoStreams, ABlockThatWasKeptOrWhoseUseIsOverMayBeFreed) {
  order.wait_for(b, order.mark(a));
  read(b);
  order.keep_for(&block, b);
  order.freed(&block);
  order.allocated(&block, 100, a);
  order.wait_for(b, order.mark(a));
  read(b);
  order.wait_for(a, order.mark(b));
  order.freed(&block);
  EXPECT_THAT(order.races(), IsEmpty());
}

// Like a sender's lane, which waits for the receiver's.
TEST_F(TwoStreams, ABlockThatWasKeptForAStreamBehindItsUsersMayBeFreed) {
  const int c = order.new_stream();
  order.wait_for(b, order.mark(a));
  read(b);
  order.keep_for(&block, c);
  order.wait_for(c, order.mark(b));
  order.freed(&block);
  EXPECT_THAT(order.races(), IsEmpty());
}

// Earlier work in that memory may still run on the stream that owns it.
TEST_F(TwoStreams, FreshMemoryIsItsFirstStreamsUntilAnotherIsBehindIt) {
  write(b);
  EXPECT_THAT(order.races(), ElementsAre(HasSubstr("what its allocation on stream 1 may not have written")));
}

}  // namespace
}  // namespace slipway::test
