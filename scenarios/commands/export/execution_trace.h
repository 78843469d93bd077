// Chakra execution traces: the file format of other simulators (ASTRA-sim and its feeder), by Chakra's own schema
// (scenarios/commands/export/chakra/). One file per rank:
//
//   <length><GlobalMetadata> <length><Node> <length><Node> ...        lengths are varints, as Chakra's feeder reads them
//
// Guarded by tests/scenarios/export_command_test.cpp.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

namespace slipway::scenarios {

// Names and numbers of the schema are in execution_trace.cpp alone.
enum class ExecutionNodeKind : std::uint8_t { compute, send, receive, collective };
enum class ExecutionCollective : std::uint8_t { all_reduce, all_gather, reduce_scatter, all_to_all, broadcast };

struct ExecutionNode {
  std::uint64_t id = 0;  // unique in the file
  std::string name;
  ExecutionNodeKind kind = ExecutionNodeKind::compute;
  std::vector<std::uint64_t> after;  // nodes of the file that end before it starts; they come earlier in the file
  double seconds = 0;                // without waiting for others
  double flops = 0;                  // compute
  double bytes = 0;                  // message: what this rank gives to it
  ExecutionCollective collective = ExecutionCollective::all_reduce;
  std::string group;                                  // collective: a key of the file of groups
  std::int32_t source = 0, destination = 0, tag = 0;  // send, receive
  std::map<std::string, std::string> notes = {};      // further attributes, as text
};

// Writes the metadata first. Throws std::runtime_error when the stream fails.
class ExecutionTraceWriter {
 public:
  ExecutionTraceWriter(std::ostream& out, const std::map<std::string, std::string>& about);
  void write(const ExecutionNode& node);

 private:
  std::ostream& out_;
};

}  // namespace slipway::scenarios
