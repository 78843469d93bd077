// `simulate --beside`: two trainings in one cluster, on the command line.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/command_test.h"

namespace slipway {
namespace {

using testing::HasSubstr;

// Two nodes of two GPUs behind one NIC each; data parallel over both, nothing overlaps the reduction.
const char* scenario =
    "model: {family: llama, layers: 4, hidden: 1024, ffn: 2816, heads: 8, vocab: 8192, sequence: 1024}\n"
    "cluster:\n"
    "  machine: h100-80gb\n"
    "  nodes: 1\n"
    "  gpus_per_node: 2\n"
    "  fabrics:\n"
    "    - {scope: node}\n"
    "    - {scope: cluster, bandwidth: 1 GB/s, latency: 5 us, gpus_per_port: 2}\n"
    "layout: {data: 2}\n"
    "schedule: {name: 1f1b, global_batch: 2}\n";

class Beside : public CommandTest {
 protected:
  Beside() {
    SetUp();
    std::ofstream(path("a.yaml")) << scenario;
    std::ofstream(path("b.yaml")) << scenario;
  }
  nlohmann::json summary(std::vector<std::string> more) {
    std::vector<std::string> args{"simulate", path("a.yaml"), "--beside", path("b.yaml"), "--json"};
    args.insert(args.end(), more.begin(), more.end());
    const Answer answer = slipway_with(args);
    EXPECT_EQ(answer.status, status_done) << answer.err;
    return nlohmann::json::parse(answer.out);
  }
};

TEST_F(Beside, TwoEqualJobsThatShareNicsDoubleTheirExposedCommunication) {
  // GPU by GPU each job has one GPU of either node: its ring goes over the NIC that the other one's goes
  // over.
  const nlohmann::json json = summary({"--place", "alternate-gpus"});
  const nlohmann::json alone =
      nlohmann::json::parse(slipway_with({"simulate", path("a.yaml"), "--set", "cluster.nodes=2", "--set",
                                          "cluster.gpus_per_node=1", "--json"})
                                .out);
  const double step = alone["step_time_s"], exposed = alone["exposed_comm_s"];
  ASSERT_GT(exposed, 0.5 * step);
  for (const int job : {0, 1}) {
    EXPECT_NEAR(json["alone_s"][job], step, 1e-6 * step);
    EXPECT_NEAR(json["beside_s"][job], step + exposed,
                0.02 * step);  // the reduction that overlaps also waits
    EXPECT_GE(json["periods"][job], 2);
  }
}

TEST_F(Beside, JobsInNodesOfTheirOwnOnANonBlockingNetworkDoNotNoticeEachOther) {
  const nlohmann::json json = summary({});
  EXPECT_EQ(json["gpus"], nlohmann::json::parse("[2, 2]"));
  for (const int job : {0, 1}) {
    const double alone = json["alone_s"][job], together = json["beside_s"][job];
    EXPECT_NEAR(together, alone, 1e-9 * alone);
  }
}

TEST_F(Beside, PrintsATableOfBoth) {
  const Answer answer = slipway_with({"simulate", path("a.yaml"), "--beside", path("b.yaml"),
                                      "--beside-set", "model.layers=2", "--place", "alternate-gpus"});
  EXPECT_EQ(answer.status, status_done) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("beside the other"));
  EXPECT_THAT(answer.out, testing::ContainsRegex("\n  a  +2 .*\n  b  +2 "));
}

TEST_F(Beside, SaysWhatCannotBeNeighbours) {
  const auto refused = [&](std::vector<std::string> args) {
    args.insert(args.begin(), {"simulate", path("a.yaml")});
    const Answer answer = slipway_with(args);
    EXPECT_EQ(answer.status, status_usage);
    return answer.err;
  };
  EXPECT_THAT(refused({"--beside", path("b.yaml"), "--beside-set", "cluster.machine=a100-80gb"}),
              HasSubstr("make them the same"));
  EXPECT_THAT(refused({"--beside", path("b.yaml"), "--place", "anywhere"}), HasSubstr("alternate-nodes"));
  EXPECT_THAT(refused({"--beside", path("b.yaml"), "--beside-set", "foo.bar=3"}),
              testing::AllOf(HasSubstr("--beside-set foo.bar=3: "), testing::Not(HasSubstr("--set foo"))));
  EXPECT_THAT(refused({"--place", "packed"}), HasSubstr("--beside FILE"));
  EXPECT_THAT(refused({"--beside", path("b.yaml"), "--steps", "4"}), HasSubstr("--steps"));
  EXPECT_THAT(refused({"--beside", path("none.yaml")}), HasSubstr("none.yaml"));
  EXPECT_THAT(refused({"--beside", path("b.yaml"), "--set",
                       "cluster.fabrics.1={scope: cluster, topology: {kind: torus, shape: [2]}}"}),
              HasSubstr("does not fit"));
}

}  // namespace
}  // namespace slipway
