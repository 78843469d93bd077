// Whether two task graphs are equal, element by element. Sizes in bytes too: both are made by one program.
#pragma once

#include <algorithm>
#include <string>
#include <tuple>

#include "schedules/graph/task_graph.h"

namespace slipway::test {

inline auto tied(const Work& w) {
  return std::tie(w.kind, w.pass, w.stage, w.slice, w.block, w.experts, w.first_op, w.last_op, w.collective, w.wire,
                  w.dtype, w.bytes, w.elements, w.bubble_work, w.suffix);
}
inline auto tied(const Communicator& c) { return std::tie(c.name, c.axis, c.ranks, c.tokens); }
inline auto tied(const Task& t) {
  return std::tie(t.kind, t.rank, t.communicator, t.work, t.micro_batch, t.slice, t.step);
}
inline auto tied(const Buffer& b) { return std::tie(b.kind, b.wire, b.rank, b.bytes, b.writer); }
inline auto tied(const StaticBytes& s) { return std::tie(s.weights, s.gradients, s.optimizer); }
inline auto tied(const Operator& op) { return std::tie(op.kind, op.block, op.reads, op.writes, op.forward_flops); }

// The first list in which they differ, and where; empty where the graphs are equal.
inline std::string difference(const TaskGraph& a, const TaskGraph& b) {
  std::string found;
  const auto compare = [&](const char* name, const auto& x, const auto& y, const auto& equal) {
    if (!found.empty()) return;
    const auto [at, other] = std::mismatch(x.begin(), x.end(), y.begin(), y.end(), equal);
    if (at != x.end() || other != y.end())
      found = std::string(name) + " differ at " + std::to_string(at - x.begin()) + " of " + std::to_string(x.size()) +
              " and " + std::to_string(y.size());
  };
  const auto same_fields = [](const auto& x, const auto& y) { return tied(x) == tied(y); };
  const auto same = [](const auto& x, const auto& y) { return x == y; };
  compare("works", a.works, b.works, same_fields);
  compare("communicators", a.communicators, b.communicators, same_fields);
  compare("tasks", a.tasks, b.tasks, same_fields);
  compare("buffers", a.buffers, b.buffers, same_fields);
  compare("static bytes", a.static_bytes, b.static_bytes, same_fields);
  const auto rows = [&](const char* name, const Rows& x, const Rows& y) {
    compare(name, x.begin, y.begin, same);
    compare(name, x.values, y.values, same);
  };
  rows("inputs", a.inputs, b.inputs);
  rows("outputs", a.outputs, b.outputs);
  rows("predecessors", a.predecessors, b.predecessors);
  rows("successors", a.successors, b.successors);
  rows("compute orders", a.compute_order, b.compute_order);
  compare("orders", a.order, b.order, same);
  compare("carried dependencies", a.carried, b.carried, same);
  compare("stages", a.stages, b.stages, same);
  compare("placements", a.placement.rank, b.placement.rank, same);
  compare("operators", a.stage_operators, b.stage_operators, [&](const auto& x, const auto& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), same_fields);
  });
  if (found.empty() && std::tie(a.window, a.micro_batches, a.placement.copies, a.representatives) !=
                           std::tie(b.window, b.micro_batches, b.placement.copies, b.representatives))
    found = "windows, micro-batches, copies or representatives differ";
  return found;
}

}  // namespace slipway::test
