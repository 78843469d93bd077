#include "scenarios/commands/export/execution_trace.h"

#include <et_def.pb.h>
#include <google/protobuf/util/delimited_message_util.h>

#include <cmath>
#include <ostream>
#include <stdexcept>

namespace slipway::scenarios {
namespace {

constexpr const char* schema_version = "0.0.4";

ChakraProtoMsg::NodeType type_of(ExecutionNodeKind kind) {
  switch (kind) {
    case ExecutionNodeKind::compute:
      return ChakraProtoMsg::COMP_NODE;
    case ExecutionNodeKind::send:
      return ChakraProtoMsg::COMM_SEND_NODE;
    case ExecutionNodeKind::receive:
      return ChakraProtoMsg::COMM_RECV_NODE;
    case ExecutionNodeKind::collective:
      return ChakraProtoMsg::COMM_COLL_NODE;
  }
  throw std::logic_error("a node without a kind");
}

ChakraProtoMsg::CollectiveCommType type_of(ExecutionCollective collective) {
  switch (collective) {
    case ExecutionCollective::all_reduce:
      return ChakraProtoMsg::ALL_REDUCE;
    case ExecutionCollective::all_gather:
      return ChakraProtoMsg::ALL_GATHER;
    case ExecutionCollective::reduce_scatter:
      return ChakraProtoMsg::REDUCE_SCATTER;
    case ExecutionCollective::all_to_all:
      return ChakraProtoMsg::ALL_TO_ALL;
    case ExecutionCollective::broadcast:
      return ChakraProtoMsg::BROADCAST;
  }
  throw std::logic_error("a collective without a kind");
}

std::int64_t whole(double number) { return std::llround(number); }

template <typename Message>
void write_delimited(std::ostream& out, const Message& message) {
  if (!google::protobuf::util::SerializeDelimitedToOstream(message, &out))
    throw std::runtime_error("an execution trace cannot be written; is the disk full?");
}

ChakraProtoMsg::AttributeProto& add(ChakraProtoMsg::Node& node, const char* name) {
  ChakraProtoMsg::AttributeProto& attribute = *node.add_attr();
  attribute.set_name(name);
  return attribute;
}

// The feeder knows these names, and each one's type.
void add_message(ChakraProtoMsg::Node& to, const ExecutionNode& node) {
  add(to, "comm_size").set_int64_val(whole(node.bytes));
  if (node.kind == ExecutionNodeKind::collective) {
    add(to, "comm_type").set_int64_val(type_of(node.collective));
    add(to, "pg_name").set_string_val(node.group);
    return;
  }
  add(to, "comm_src").set_int32_val(node.source);
  add(to, "comm_dst").set_int32_val(node.destination);
  add(to, "comm_tag").set_int32_val(node.tag);
}

}  // namespace

ExecutionTraceWriter::ExecutionTraceWriter(std::ostream& out, const std::map<std::string, std::string>& about)
    : out_(out) {
  ChakraProtoMsg::GlobalMetadata metadata;
  metadata.set_version(schema_version);
  for (const auto& [name, value] : about) {
    ChakraProtoMsg::AttributeProto& attribute = *metadata.add_attr();
    attribute.set_name(name);
    attribute.set_string_val(value);
  }
  write_delimited(out_, metadata);
}

void ExecutionTraceWriter::write(const ExecutionNode& node) {
  ChakraProtoMsg::Node message;
  message.set_id(node.id);
  message.set_name(node.name);
  message.set_type(type_of(node.kind));
  for (const std::uint64_t before : node.after) message.add_data_deps(before);
  constexpr double micros = 1e6;
  message.set_duration_micros(static_cast<std::uint64_t>(whole(micros * node.seconds)));
  add(message, "is_cpu_op").set_bool_val(false);
  if (node.kind == ExecutionNodeKind::compute)
    add(message, "num_ops").set_int64_val(whole(node.flops));
  else
    add_message(message, node);
  for (const auto& [name, value] : node.notes) add(message, name.c_str()).set_string_val(value);
  write_delimited(out_, message);
}

}  // namespace slipway::scenarios
