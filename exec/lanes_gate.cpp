// Where all lanes of a rank meet: at the beginning, at the end, and whenever what comes next is not yet known.
#include <stdexcept>

#include "exec/lanes_state.h"

namespace slipway {

using namespace laning;

// Null when the run is over, or broken. The last lane to arrive asks; what it throws is its lane's error.
LocalProgram* LaneRunner::State::pass_gate(LaneThread& thread) {
  thread.doing = "before its next steps";
  std::unique_lock lock(gate);
  if (++arrived < names.size()) {
    gate_opens.wait(lock, [this, round = rounds] { return rounds != round || broken; });
  } else {
    thread.now_step = steps_agreed;
    open_gate();
    arrived = 0;
    ++rounds;
    gate_opens.notify_all();
  }
  return over || broken ? nullptr : entered.back().get();
}

// No lane is at work.
void LaneRunner::State::open_gate() {
  const StepSpan span = next(steps_agreed);
  over = span.steps == 0;
  if (over) return;
  const TaskGraph& graph = *graphs.at(static_cast<std::size_t>(span.program));
  const std::lock_guard lock(entered_mutex);
  if (entered.empty() || &entered.back()->graph != &graph) enter(graph);
  LocalProgram& program = *entered.back();
  program.until += span.steps;
  for (const auto& lane : program.lanes) lane->make_room(program.until);
  steps_agreed += span.steps;
}

void LaneRunner::State::enter(const TaskGraph& graph) {
  auto program = std::make_unique<LocalProgram>(graph, rank, hooks.device != nullptr);
  bool same = program->lanes.size() == names.size();
  for (std::size_t i = 0; same && i < names.size(); ++i) same = program->lanes[i]->name == names[i];
  if (!same) throw std::invalid_argument("the step programs of a run have different lanes");
  program->first_step = steps_agreed;
  entered.push_back(std::move(program));
}

}  // namespace slipway
