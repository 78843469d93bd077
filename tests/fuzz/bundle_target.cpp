// A bundle. Its checksum is computed, so that the reader behind it is reached. What is read is written and read again.
#include <sstream>
#include <utility>

#include "schedules/bundle/bundle.h"
#include "schedules/lower/filled_window.h"
#include "schedules/lower/lowering.h"
#include "schedules/rules/rules.h"
#include "schedules/time/durations.h"
#include "schedules/time/global_order.h"
#include "tests/fuzz/target.h"

namespace slipway::test {
namespace {

// FNV-1a, 64 bits, as schedules/bundle/bundle.cpp has it.
std::uint64_t checksum(std::string_view text) {
  std::uint64_t hash = 14695981039346656037ull;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash;
}

std::string without_checksum(std::string_view text) {
  const std::size_t at = text.rfind("checksum ");
  return std::string(at == std::string_view::npos ? text : text.substr(0, at));
}

std::string written(const Bundle& bundle) {
  std::ostringstream out;
  write_bundle(out, bundle);
  return out.str();
}

void try_input(std::string_view input) {
  const std::string text = without_checksum(input);
  std::istringstream in(text + "checksum " + std::to_string(checksum(text)) + "\n");
  const Bundle bundle = read_bundle(in, "run.slip");
  const std::string again = written(bundle);
  std::istringstream back(again);
  try {
    promise(written(read_bundle(back, "run.slip")) == again, "a written bundle reads as another one");
  } catch (const std::runtime_error& refused) {
    throw BrokenPromise(std::string("a written bundle is refused: ") + refused.what());
  }
}

TaskGraph ordered(const Step& step) {
  if (!legal(step)) throw std::invalid_argument(text_of(refusals(step).front()));
  TaskGraph graph = lower(step);
  set_global_order(graph, Durations(std::vector<double>(graph.tasks.size(), 1.0)));
  return graph;
}

Step small_step() {
  Step step;
  step.model =
      llama("small", {.layers = 2, .hidden = 64, .ffn = 128, .heads = 4, .kv_heads = 2, .vocab = 256, .sequence = 32});
  step.micro_batch = 1;
  step.global_batch = 2;
  step.dtype = Dtype::float64;
  return step;
}

Bundle bundle_of(const Step& step) {
  Bundle bundle;
  bundle.scenario = "small";
  bundle.graph = ordered(step);
  bundle.run.steps = 3;
  bundle.run.data = "/a path/text.txt";
  return bundle;
}

Step with_experts() {
  Step step = small_step();
  step.model = llama("experts", {.layers = 2,
                                 .hidden = 32,
                                 .ffn = 24,
                                 .heads = 4,
                                 .kv_heads = 2,
                                 .vocab = 256,
                                 .sequence = 16,
                                 .experts = 4,
                                 .experts_per_token = 2});
  step.layout = {.data = 2, .expert = 2};
  return step;
}

Bundle growing() {
  Step step = small_step();
  step.layout = {.data = 2};  // the norm test compares workers
  step.worker_norms = true;
  Bundle bundle = bundle_of(step);
  step.global_batch *= 2;
  bundle.larger = {ordered(step)};
  bundle.batches = {.rule = BatchRule::norm_test, .rungs = {step.global_batch / 2, step.global_batch}, .eta = 0.3};
  return bundle;
}

// K-FAC's step with one item behind it.
Bundle with_bubble_work() {
  Step step = small_step();
  step.optimizer.name = "kfac";
  Bundle bundle = bundle_of(step);
  TaskGraph& graph = bundle.graph;
  PlacedBubbleWork placed;
  placed.works.emplace_back();
  placed.works[0].kind = WorkKind::bubble_work;
  placed.works[0].suffix = ".item";
  const auto id = static_cast<TaskId>(graph.tasks.size()), last = graph.order.back();
  const auto works = static_cast<std::int32_t>(graph.works.size());
  const auto kept = static_cast<BufferId>(graph.buffers.size());
  placed.tasks.push_back({{TaskKind::bubble_work, 0, none, works, none, 0}, {kept}, {last}});
  placed.buffers.push_back({BufferKind::kept, 0, 0, 64, static_cast<std::int32_t>(last)});
  std::vector<TaskId> order = graph.order;
  order.push_back(id);
  add_bubble_work(graph, placed);
  graph.order = std::move(order);
  return bundle;
}

std::vector<std::string> seeds() {
  std::vector<std::string> texts{without_checksum(written(bundle_of(small_step())))};
  Step step = small_step();
  step.layout = {.tensor = 2, .pipeline = 2, .sequence_parallel = true};
  step.clip_norm = 0.3;
  texts.push_back(without_checksum(written(bundle_of(step))));
  step.layout = {.pipeline = 2, .data = 2, .zero = 1};
  step.global_batch = 4;
  texts.push_back(without_checksum(written(bundle_of(step))));
  step.layout = {.pipeline = 2};
  step.actions = std::make_shared<const ActionLists>(action_lists(step));
  texts.push_back(without_checksum(written(bundle_of(step))));
  texts.push_back(without_checksum(written(bundle_of(with_experts()))));
  texts.push_back(without_checksum(written(growing())));
  texts.push_back(without_checksum(written(with_bubble_work())));
  return texts;
}

const RegisterTarget target({"bundle", try_input, seeds});

}  // namespace
}  // namespace slipway::test
