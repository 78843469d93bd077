// A pipeline schedule as a function of its shape. The names of the passes are those of the zero-bubble papers: a backward
// may be whole (B), or an input gradient (I) and, later, a weight gradient (W).
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace slipway {

enum class Pass { forward, backward, input_grad, weight_grad };

// A pass of one stage over one micro-batch. Stages are counted along the model, micro-batches from 0.
struct Action {
  Pass pass = Pass::forward;
  int stage = 0;
  int micro_batch = 0;
  bool with_next = false;  // with the next action of the rank it is one cell (DualPipe): both run at the same time
};

struct Shape {
  int pipeline = 1;       // ranks
  int chunks = 1;         // stages on each rank
  int micro_batches = 1;  // of a pipeline
  int stages() const { return pipeline * chunks; }
};

// The passes of each pipeline rank, in the order in which it runs them. Where a stage is follows from the lists.
using ActionLists = std::vector<std::vector<Action>>;

struct Schedule {
  std::string name;  // as answers show it
  // A pure function. Throw std::invalid_argument to refuse a shape. Its lists are checked: each stage runs each
  // micro-batch once forward and once backward, and ranks do not wait for each other in a circle.
  std::function<ActionLists(const Shape&)> actions;
  int chunks = 1;  // where a scenario does not set layout.chunks
};

}  // namespace slipway
