#include "models/trace/trace.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace slipway::test {
namespace {

TraceRecord record_of(int rank, int group, const char* lane, const char* kind, double start, double end) {
  TraceRecord record;
  record.rank = rank;
  record.group = group;
  record.lane = lane;
  record.label = "0F0.L0.ag1";
  record.kind = kind;
  record.start_s = start;
  record.end_s = end;
  return record;
}

TEST(Waiting, OfACollectiveIsTheTimeUntilItsLastMemberStarts) {
  Trace trace;
  trace.records = {record_of(0, 0, "tp", "all-gather", 1.0, 5.0), record_of(1, 0, "tp", "all-gather", 3.0, 5.0)};
  split_waiting(trace);
  EXPECT_DOUBLE_EQ(trace.records[0].wait_s, 2.0);
  EXPECT_DOUBLE_EQ(trace.records[1].wait_s, 0.0);
  EXPECT_DOUBLE_EQ(work_seconds(trace.records[0]), 2.0);
  EXPECT_DOUBLE_EQ(work_seconds(trace.records[1]), 2.0);
}

TEST(Waiting, IsNotSharedByGroupsThatRunTheSameLabelOnLanesOfTheSameName) {
  Trace trace;
  trace.records = {record_of(0, 0, "tp", "all-gather", 1.0, 2.0), record_of(1, 0, "tp", "all-gather", 1.0, 2.0),
                   record_of(2, 1, "tp", "all-gather", 1.5, 2.5), record_of(3, 1, "tp", "all-gather", 1.5, 2.5)};
  split_waiting(trace);
  for (const TraceRecord& record : trace.records) EXPECT_EQ(record.wait_s, 0) << "rank " << record.rank;
}

TEST(Waiting, IsNotSharedByStepsAndIsNoMatterOfCompute) {
  Trace trace;
  trace.records = {record_of(0, 0, "tp", "all-gather", 1.0, 2.0), record_of(1, 0, "tp", "all-gather", 1.5, 2.0),
                   record_of(0, -1, "compute", "forward", 0.0, 1.0), record_of(1, -1, "compute", "forward", 0.9, 1.0)};
  trace.records[1].step = 1;
  split_waiting(trace);
  for (const TraceRecord& record : trace.records) EXPECT_EQ(record.wait_s, 0);
}

TEST(Waiting, IsNeverLongerThanTheRecord) {
  Trace trace;  // a buffered send that was over before its receiver came
  trace.records = {record_of(0, 0, "pp.forward.0-1", "transfer", 1.0, 1.5),
                   record_of(1, 0, "pp.forward.0-1", "transfer", 4.0, 4.25)};
  split_waiting(trace);
  EXPECT_DOUBLE_EQ(work_seconds(trace.records[0]), 0.0);
  EXPECT_DOUBLE_EQ(work_seconds(trace.records[1]), 0.25);
}

TEST(WorkTimes, OfATransferAreThoseOfItsReceiver) {
  Trace trace;  // a send of 0.2 s whose bytes arrive a second later, and a collective that ends sooner on one rank
  trace.records = {record_of(0, 0, "pp.forward.0-1", "transfer", 1.0, 1.2),
                   record_of(1, 0, "pp.forward.0-1", "transfer", 0.5, 2.25),
                   record_of(0, 1, "tp", "all-gather", 3.0, 4.0), record_of(1, 1, "tp", "all-gather", 3.0, 3.5)};
  split_waiting(trace);
  EXPECT_EQ(work_times(trace), (std::vector<double>{1.25, 1.25, 1.0, 0.5}));
}

TEST(Communication, IsTransfersAndCollectivesOnly) {
  for (const char* kind : {"transfer", "all-reduce", "all-gather", "reduce-scatter", "broadcast"})
    EXPECT_TRUE(is_communication(kind)) << kind;
  for (const char* kind : {"forward", "backward", "recompute", "optimizer", "none", ""})
    EXPECT_FALSE(is_communication(kind)) << kind;
}

TEST(RecordText, RoundTripsEveryBit) {
  TraceRecord record = record_of(7, 3, "pp.forward.2-3", "transfer", 0.1, 1.0 / 3);
  record.step = 12;
  record.wait_s = 1e-300;
  record.flops = 6.0221e23;
  record.bytes = 12345678901234567.0;
  record.memory_bytes = 3e9;
  record.memory_peak_bytes = 4e9;
  const std::string text = to_text(record);
  const TraceRecord back = record_from_text(text);
  EXPECT_EQ(back.step, 12);
  EXPECT_EQ(back.rank, 7);
  EXPECT_EQ(back.group, 3);
  EXPECT_EQ(back.lane, record.lane);
  EXPECT_EQ(back.label, record.label);
  EXPECT_EQ(back.kind, record.kind);
  EXPECT_EQ(back.start_s, 0.1);
  EXPECT_EQ(back.end_s, 1.0 / 3);
  EXPECT_EQ(back.wait_s, 1e-300);
  EXPECT_EQ(back.flops, 6.0221e23);
  EXPECT_EQ(back.bytes, record.bytes);
  EXPECT_EQ(back.memory_bytes, 3e9);
  EXPECT_EQ(back.memory_peak_bytes, 4e9);
  EXPECT_EQ(to_text(back), text);
}

std::string complaint_about(const std::string& line) {
  try {
    record_from_text(line);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(RecordText, ThatIsDamagedIsRefusedWithTheFieldAndTheLine) {
  const std::string good = to_text(record_of(0, 0, "tp", "all-gather", 1.0, 2.0));
  ASSERT_EQ(complaint_about(good), "accepted");
  EXPECT_NE(complaint_about(good.substr(0, good.rfind('\t'))).find("field memory peak is missing"), std::string::npos);
  EXPECT_NE(complaint_about(good + "\t1").find("more than 13 fields"), std::string::npos);
  EXPECT_NE(complaint_about("x" + good).find("field step is no number: \"x0\""), std::string::npos);
  EXPECT_NE(complaint_about(good + "x").find("field memory peak is no number"), std::string::npos);
  EXPECT_NE(complaint_about("0\t0\t\ta\tb\t0\t0\t0\t0\t0\t0").find("field lane is empty"), std::string::npos);
  EXPECT_NE(complaint_about("").find("field step"), std::string::npos);
}

TEST(RecordText, IsNotWrittenWithNamesThatWouldBreakTheLine) {
  TraceRecord record = record_of(0, 0, "tp", "all-gather", 1.0, 2.0);
  record.label = "two\tfields";
  EXPECT_THROW(to_text(record), std::invalid_argument);
  record.label = "";
  EXPECT_THROW(to_text(record), std::invalid_argument);
}

}  // namespace
}  // namespace slipway::test
