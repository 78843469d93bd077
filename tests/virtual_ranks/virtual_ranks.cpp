#include "tests/virtual_ranks/virtual_ranks.h"

#include <ATen/ATen.h>

#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "exec/transport/local_transport.h"

namespace slipway::test {
namespace {

at::Tensor sum_of_inputs(const std::vector<Message>& messages) {
  at::Tensor sum = messages.front().input.clone();
  for (std::size_t i = 1; i < messages.size(); ++i) sum.add_(messages[i].input);
  return sum;
}

at::Tensor concatenated_inputs(const std::vector<Message>& messages) {
  std::vector<at::Tensor> parts;
  for (const Message& message : messages) parts.push_back(message.input);
  return at::cat(parts, 0);
}

// Members that talk more than once do so in a thread each, over copies in memory.
void exchange_in_threads(std::vector<Message>& messages) {
  Group group{.id = 0, .name = "virtual ranks", .ranks = {}};
  for (std::size_t member = 0; member < messages.size(); ++member) group.ranks.push_back(static_cast<int>(member));
  LocalGroups here;
  std::vector<std::unique_ptr<Transport>> transports;
  for (const int member : group.ranks) transports.push_back(here.join(group, member, nullptr));
  std::mutex mutex;
  std::exception_ptr error;
  const auto talk = [&](std::size_t member) {
    at::NoGradGuard no_grad;
    try {
      messages[member].exchange(*transports[member], messages[member]);
    } catch (...) {
      transports[member]->shutdown();
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  for (std::size_t member = 1; member < messages.size(); ++member) others.emplace_back(talk, member);
  talk(0);
  for (std::thread& thread : others) thread.join();
  if (error) std::rethrow_exception(error);
}

// Applies a collective to the messages of all members in communicator order.
void exchange(Collective collective, std::vector<Message>& messages) {
  switch (collective) {
    case Collective::all_reduce: {
      const at::Tensor sum = sum_of_inputs(messages);
      for (Message& message : messages) message.output.copy_(sum);
      return;
    }
    case Collective::all_gather: {
      const at::Tensor whole = concatenated_inputs(messages);
      for (Message& message : messages) message.output.copy_(whole);
      return;
    }
    case Collective::reduce_scatter: {
      const at::Tensor sum = sum_of_inputs(messages);
      const std::int64_t rows = sum.size(0) / static_cast<std::int64_t>(messages.size());
      for (std::size_t i = 0; i < messages.size(); ++i)
        messages[i].output.copy_(sum.narrow(0, static_cast<std::int64_t>(i) * rows, rows));
      return;
    }
    case Collective::shift:
      for (std::size_t i = 0; i < messages.size(); ++i)
        messages[(i + 1) % messages.size()].output.copy_(messages[i].input);
      return;
    default:
      throw std::runtime_error(std::string("virtual ranks know no collective ") + name_of(collective));
  }
}

}  // namespace

VirtualRanks::VirtualRanks(const Bundle& bundle, at::Device device) : graph_(&bundle.graph) {
  if (bundle.graph.order.size() != bundle.graph.tasks.size()) throw std::runtime_error("the graph has no global order");
  for (int rank = 0; rank < rank_count(bundle.graph.step.layout); ++rank)
    ranks_.push_back(std::make_unique<RankModel>(bundle, rank, device));
}

void VirtualRanks::enter(const TaskGraph& graph, const Progress& before, int step) {
  for (const auto& rank : ranks_) rank->enter(graph, before, step);
  graph_ = &graph;
}

void VirtualRanks::run_step(int step) {
  for (const TaskId task : graph_->order) {
    const Task& what = graph_->tasks[task];
    if (what.communicator == none)
      ranks_[what.rank]->run(task, step);
    else
      communicate(task, step);
  }
  for (const auto& rank : ranks_) rank->check(step);
}

void VirtualRanks::communicate(TaskId task, int step) {
  at::NoGradGuard no_grad;
  const TaskGraph& graph = *graph_;
  const auto members = members_of(graph, task);
  std::vector<Message> messages;
  for (const std::int32_t rank : members) messages.push_back(ranks_[rank]->message(task, step));
  if (messages.front().exchange)
    exchange_in_threads(messages);
  else if (goes_one_way(graph, graph.tasks[task]))
    messages[1].output.copy_(messages[0].input);
  else
    exchange(graph.work(task).collective, messages);
  for (std::size_t i = 0; i < members.size(); ++i) ranks_[members[i]]->arrived(task, step, messages[i]);
}

void VirtualRanks::replay_segments(SegmentCapture& capture) {
  for (const auto& rank : ranks_) rank->replay_segments(capture);
}

std::optional<GradientNorms> VirtualRanks::take_norms(int step) {
  std::optional<GradientNorms> norms = ranks_.front()->take_norms(step);
  for (std::size_t rank = 1; rank < ranks_.size(); ++rank)
    if (ranks_[rank]->take_norms(step) != norms) throw std::runtime_error("ranks know different norms of one gradient");
  return norms;
}

double VirtualRanks::take_loss(int step) {
  double sum = 0;
  for (const auto& rank : ranks_) sum += rank->take_loss(step);
  return sum;
}

std::optional<double> VirtualRanks::take_evaluation(int step) {
  std::optional<double> sum;
  for (const auto& rank : ranks_)
    if (const std::optional<double> part = rank->take_evaluation(step)) sum = sum.value_or(0) + *part;
  return sum;
}

void VirtualRanks::dump_gradients_of_step(int step, const std::string& directory) {
  for (const auto& rank : ranks_) rank->dump_gradients_of_step(step, directory);
}

}  // namespace slipway::test
