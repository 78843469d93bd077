// `slipway export --chakra`: files that Chakra's feeder reads. They are read here by the wire format of protocol buffers
// (protobuf.dev, "Encoding") and the numbers of Chakra's schema, not by the code that wrote them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string_view>

#include "tests/support/command_test.h"
#include "tests/support/printed.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;

const std::string scenario = std::string(SLIPWAY_SOURCE_DIR) + "/scenarios/examples/tiny-llama-cpu.yaml";

// Fields of a message by number: numbers, and texts or messages inside.
struct Fields {
  std::multimap<int, std::uint64_t> numbers;
  std::multimap<int, std::string_view> texts;
  std::uint64_t number(int field) const {
    const auto found = numbers.find(field);
    return found == numbers.end() ? 0 : found->second;
  }
  std::string text(int field) const {
    const auto found = texts.find(field);
    return found == texts.end() ? "" : std::string(found->second);
  }
};

std::uint64_t varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (int shift = 0; !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  ADD_FAILURE() << "a number is cut";
  return value;
}

std::string_view taken(std::string_view& bytes, std::uint64_t count) {
  EXPECT_LE(count, bytes.size());
  const std::string_view result = bytes.substr(0, count);
  bytes.remove_prefix(result.size());
  return result;
}

Fields fields_of(std::string_view bytes) {
  Fields fields;
  while (!bytes.empty()) {
    const std::uint64_t tag = varint(bytes);
    const int field = static_cast<int>(tag >> 3);
    if ((tag & 7) == 0)
      fields.numbers.emplace(field, varint(bytes));
    else if ((tag & 7) == 2)
      fields.texts.emplace(field, taken(bytes, varint(bytes)));
    else
      ADD_FAILURE() << "wire type " << (tag & 7) << " of field " << field;
  }
  return fields;
}

// Numbers of et_def.proto.
enum Type : std::uint64_t { compute = 4, send = 5, receive = 6, collective = 7 };
struct Node {
  std::uint64_t id = 0, type = 0, micros = 0;
  std::string name;
  std::vector<std::uint64_t> after;
  std::map<std::string, std::uint64_t> numbers;  // attributes
  std::map<std::string, std::string> texts;
};

Node node_of(std::string_view bytes) {
  const Fields fields = fields_of(bytes);
  Node node{fields.number(1), fields.number(3), fields.number(7), fields.text(2), {}, {}, {}};
  for (auto [at, end] = fields.texts.equal_range(5); at != end; ++at)  // repeated numbers are packed
    for (std::string_view packed = at->second; !packed.empty();) node.after.push_back(varint(packed));
  for (auto [at, end] = fields.texts.equal_range(10); at != end; ++at) {
    const Fields attribute = fields_of(at->second);
    for (const int field : {7, 9, 13, 27})  // int32, int64, uint64, bool
      if (attribute.numbers.contains(field)) node.numbers[attribute.text(1)] = attribute.number(field);
    if (attribute.texts.contains(29)) node.texts[attribute.text(1)] = attribute.text(29);
  }
  return node;
}

// A file: its metadata, then its nodes, each behind its length.
std::vector<Node> nodes_of(const std::string& path) {
  const std::string text = text_of(path);
  std::string_view bytes = text;
  EXPECT_EQ(fields_of(taken(bytes, varint(bytes))).text(1), "0.0.4") << "version of the schema";
  std::vector<Node> nodes;
  while (!bytes.empty()) nodes.push_back(node_of(taken(bytes, varint(bytes))));
  return nodes;
}

class ExportCommand : public CommandTest {
 protected:
  std::vector<std::vector<Node>> exported(int ranks, const std::vector<std::string>& settings = {}) {
    std::vector<std::string> args{"export", scenario, "--chakra", "-o", path("et")};
    for (const std::string& setting : settings) args.insert(args.end(), {"--set", setting});
    const Answer answer = slipway_with(args);
    EXPECT_EQ(answer.status, status_done) << answer.err;
    std::vector<std::vector<Node>> all;
    for (int rank = 0; rank < ranks; ++rank)
      all.push_back(nodes_of(path("et/tiny-llama-cpu." + std::to_string(rank) + ".et")));
    EXPECT_FALSE(std::filesystem::exists(path("et/tiny-llama-cpu." + std::to_string(ranks) + ".et")));
    return all;
  }
  nlohmann::json groups() const { return nlohmann::json::parse(text_of(path("et/groups.json"))); }
};

const Node& named(const std::vector<Node>& nodes, const std::string& name) {
  for (const Node& node : nodes)
    if (node.name == name) return node;
  ADD_FAILURE() << "no node " << name;
  return nodes.front();
}

TEST_F(ExportCommand, NodesFollowWhatTheyWaitForAndCarryTimeAndWork) {
  const auto ranks = exported(2);
  for (const std::vector<Node>& nodes : ranks) {
    std::set<std::uint64_t> before;
    for (const Node& node : nodes) {
      for (const std::uint64_t id : node.after) EXPECT_TRUE(before.contains(id)) << node.name << " waits for " << id;
      EXPECT_TRUE(before.insert(node.id).second) << node.name << ": its id is another node's";
    }
  }
  // docs/architecture.md follows this task: 28,311,552 FLOPs, 2.815 ms; it reads what 0F0 sends.
  const Node& forward = named(ranks[1], "1F0");
  EXPECT_EQ(forward.type, compute);
  EXPECT_EQ(forward.numbers.at("num_ops"), 28311552u);
  EXPECT_EQ(forward.numbers.at("is_cpu_op"), 0u);
  EXPECT_EQ(forward.micros, 2815u);
  EXPECT_EQ(forward.texts.at("kind"), "forward");
  EXPECT_THAT(forward.after, testing::ElementsAre(named(ranks[1], "0F0.send").id));
  // The lane's order: 1F1 comes after 1B0.
  EXPECT_THAT(named(ranks[1], "1F1").after, testing::Contains(named(ranks[1], "1B0").id));
}

// protoc decodes the nodes by Chakra's own schema: an unknown field would be printed by its number.
TEST_F(ExportCommand, ProtocReadsEveryNodeByTheSchema) {
  if (std::system("command -v protoc >/dev/null 2>&1") != 0) GTEST_SKIP() << "protoc is not installed";
  const std::vector<Node> nodes = exported(2).front();
  // The file's nodes, each behind its length, are a message that repeats a node: each needs only its field number.
  const std::string text = text_of(path("et/tiny-llama-cpu.0.et"));
  std::string_view bytes = text;
  taken(bytes, varint(bytes));  // metadata
  std::string message;
  while (!bytes.empty()) {
    const std::string_view before = bytes;
    taken(bytes, varint(bytes));
    message += '\x0a' + std::string(before.substr(0, before.size() - bytes.size()));
  }
  std::ofstream(path("nodes.bin"), std::ios::binary) << message;
  std::ofstream(path("nodes.proto")) << "syntax = \"proto3\"; import \"et_def.proto\";\n"
                                        "message Nodes { repeated ChakraProtoMsg.Node node = 1; }\n";
  const Printed decoded = printed_by(
      "protoc --proto_path=" SLIPWAY_SOURCE_DIR "/scenarios/commands/export/chakra --proto_path=" + path("") +
      " --decode=Nodes nodes.proto < " + path("nodes.bin") + " 2>&1");
  ASSERT_EQ(decoded.status, 0) << decoded.text;
  std::map<std::string, std::size_t> lines;
  std::istringstream printed(decoded.text);
  for (std::string line; std::getline(printed, line);) {
    ++lines[line];
    const std::size_t word = line.find_first_not_of(' ');
    ASSERT_FALSE(word != std::string::npos && line[word] >= '0' && line[word] <= '9') << line;
  }
  const auto count = [&](Type type) {
    return static_cast<std::size_t>(
        std::count_if(nodes.begin(), nodes.end(), [type](const Node& node) { return node.type == type; }));
  };
  EXPECT_EQ(lines["node {"], nodes.size());
  EXPECT_GT(count(compute), 0u);
  EXPECT_EQ(lines["  type: COMP_NODE"], count(compute));
  EXPECT_EQ(lines["  type: COMM_SEND_NODE"], count(send));
  EXPECT_EQ(lines["  type: COMM_RECV_NODE"], count(receive));
  EXPECT_EQ(lines["  type: COMM_COLL_NODE"], count(collective));
}

TEST_F(ExportCommand, EverySendHasItsReceive) {
  const auto ranks = exported(4, {"layout.pipeline=4", "cluster.gpus_per_node=4"});
  std::multiset<std::vector<std::uint64_t>> sent, received;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    for (const Node& node : ranks[rank]) {
      if (node.type != send && node.type != receive) continue;
      EXPECT_EQ(node.numbers.at(node.type == send ? "comm_src" : "comm_dst"), rank);
      (node.type == send ? sent : received)
          .insert({node.numbers.at("comm_src"), node.numbers.at("comm_dst"), node.numbers.at("comm_tag"),
                   node.numbers.at("comm_size")});
    }
  EXPECT_EQ(sent, received);
  EXPECT_EQ(sent.size(), 24u) << "3 boundaries, 4 micro-batches, there and back";
  EXPECT_EQ(std::set(sent.begin(), sent.end()).size(), sent.size()) << "a tag names one message";
}

TEST_F(ExportCommand, MembersOfAGroupHaveTheSameCollectives) {
  const auto ranks = exported(2, {"layout.pipeline=1", "layout.data=2", "layout.zero=1"});
  std::map<std::string, std::set<std::size_t>> members;
  std::vector<std::vector<std::vector<std::uint64_t>>> collectives(2);
  for (std::size_t rank = 0; rank < 2; ++rank)
    for (const Node& node : ranks[rank]) {
      if (node.type != collective) continue;
      members[node.texts.at("pg_name")].insert(rank);
      collectives[rank].push_back({node.numbers.at("comm_type"), node.numbers.at("comm_size"), node.id});
    }
  EXPECT_EQ(collectives[0], collectives[1]);
  ASSERT_FALSE(members.empty());
  for (const auto& [group, ranks_of] : members)
    EXPECT_EQ(groups().at(group).get<std::set<std::size_t>>(), ranks_of) << "group " << group;
  // 256 · 64 + 64 · 64 ... of the embedding: ZeRO 1 reduces and scatters what it later gathers. A rank gives the whole
  // tensor to the one, and half of it to the other.
  std::map<std::uint64_t, std::uint64_t> given;
  for (const auto& each : collectives[0]) given[each[0]] += each[1];
  EXPECT_EQ(given.at(7), 2 * given.at(2)) << "reduce-scatter (7) against all-gather (2)";
}

TEST_F(ExportCommand, ARingOfContextRanksSendsAndReceives) {
  const auto ranks = exported(2, {"layout.pipeline=1", "layout.context=2", "layout.context_exchange=ring"});
  std::size_t sends = 0, receives = 0;
  for (const Node& node : ranks[0]) sends += node.type == send, receives += node.type == receive;
  EXPECT_GT(sends, 0u);
  EXPECT_EQ(sends, receives);
}

TEST_F(ExportCommand, TheSameScenarioGivesTheSameBytes) {
  exported(2);
  const std::string first = text_of(path("et/tiny-llama-cpu.1.et"));
  exported(2);
  EXPECT_EQ(text_of(path("et/tiny-llama-cpu.1.et")), first);
}

TEST_F(ExportCommand, MissingFormatOrFolderIsAWrongUsage) {
  EXPECT_THAT(slipway_with({"export", scenario, "-o", path("et")}).err,
              HasSubstr("the format is missing; give --chakra"));
  EXPECT_THAT(slipway_with({"export", scenario, "--chakra"}).err, HasSubstr("the output is missing; give -o FOLDER"));
  EXPECT_EQ(slipway_with({"export", scenario, "--chakra", "-o", scenario}).status, status_usage);
  EXPECT_EQ(files(), 0u);
}

}  // namespace
}  // namespace slipway::test
