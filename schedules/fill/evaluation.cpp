#include "schedules/fill/evaluation.h"

#include <map>
#include <stdexcept>

#include "schedules/time/durations.h"
#include "schedules/time/link_path.h"
#include "schedules/time/message_price.h"

namespace slipway::schedules {
namespace {

// A stage's forward of one micro-batch on one rank.
struct Stop {
  std::int32_t rank = none;
  double seconds = 0;
};

class Maker {
 public:
  Maker(const TaskGraph& step, const PricedCluster& cluster, const Durations& durations)
      : step_(step), cluster_(cluster), durations_(durations) {}

  BubbleWork run(int micro_batches) {
    bubble_work_.name = "evaluation";
    for (const StaticBytes& bytes : step_.static_bytes) bubble_work_.static_bytes.push_back(bytes.weights);
    for (const auto& [member, stops] : chains())
      for (int micro_batch = 0; micro_batch < micro_batches; ++micro_batch) evaluate(stops, micro_batch);
    return std::move(bubble_work_);
  }

 private:
  // Per replica (rank within its pipeline rank): the stages that micro-batch 0 passes, in their order.
  std::map<std::int32_t, std::vector<Stop>> chains() const {
    std::map<std::int32_t, std::vector<Stop>> chains;
    const std::int32_t members = step_.step.layout.data * step_.step.layout.context * step_.step.layout.tensor;
    for (TaskId id = 0; id < step_.tasks.size(); ++id) {
      const Task& task = step_.tasks[id];
      const Work& work = step_.work(task);
      if (work.kind != WorkKind::segment || work.pass != Pass::forward || task.micro_batch != 0) continue;
      std::vector<Stop>& stops = chains[task.rank % members];
      if (std::ssize(stops) <= work.stage) stops.resize(work.stage + 1);
      stops[work.stage].rank = task.rank;
      stops[work.stage].seconds += durations_[id];
    }
    return chains;
  }

  void evaluate(const std::vector<Stop>& stops, int micro_batch) {
    std::vector<BubbleGroup> before;  // what the next stage waits for
    int arrived = none;               // the residual that it reads
    for (std::size_t stage = 0; stage < stops.size(); ++stage) {
      BubbleTask item;
      item.task = {TaskKind::bubble_work,
                   stops[stage].rank,
                   none,
                   work(static_cast<int>(stage), Collective::none, ".eval"),
                   micro_batch,
                   0};
      item.seconds = stops[stage].seconds;
      item.priority = micro_batch;
      item.group = bubble_work_.groups++;
      item.after_groups = before;
      if (arrived != none) item.reads = {arrived};
      bubble_work_.items.push_back(item);
      before = {item.group};
      arrived = none;
      if (stage + 1 < stops.size() && stops[stage + 1].rank != stops[stage].rank)
        arrived = send(static_cast<int>(stage), stops[stage].rank, stops[stage + 1].rank, micro_batch, before);
    }
  }

  // Returns the index in BubbleWork::kept of the residual that arrives; `before` becomes the message.
  int send(int stage, std::int32_t from, std::int32_t to, int micro_batch, std::vector<BubbleGroup>& before) {
    BubbleTask item;
    const int id = work(stage, Collective::send, ".eval_send");
    item.task = {TaskKind::collective, none, pair(from, to), id, micro_batch, 0};
    const Communicator& communicator = bubble_work_.communicators[item.task.communicator];
    const LinkPath path = path_of(cluster_, communicator);
    item.seconds = message_seconds(bubble_work_.works[id], 2, path);
    item.group = bubble_work_.groups++;
    item.after_groups = before;
    before = {item.group};
    KeptTensor residual;
    residual.from_item = static_cast<int>(bubble_work_.items.size());
    residual.rank = to;
    residual.bytes = bubble_work_.works[id].bytes;
    bubble_work_.items.push_back(item);
    bubble_work_.kept.push_back(residual);
    return static_cast<int>(bubble_work_.kept.size()) - 1;
  }

  std::int32_t pair(std::int32_t from, std::int32_t to) {
    const auto [known, is_new] =
        pairs_.try_emplace({from, to}, static_cast<std::int32_t>(bubble_work_.communicators.size()));
    if (is_new) bubble_work_.communicators.push_back({"evaluation", Axis::pipeline, {from, to}});
    return known->second;
  }

  int work(int stage, Collective collective, const char* suffix) {
    const auto [known, is_new] = works_.try_emplace({stage, suffix}, static_cast<int>(bubble_work_.works.size()));
    if (!is_new) return known->second;
    Work work;
    work.kind = WorkKind::bubble_work;
    work.stage = stage;
    work.bubble_work = collective == Collective::none ? "evaluation" : name_of(collective);
    work.collective = collective;
    work.dtype = step_.shape().dtype;
    if (collective == Collective::none)
      work.last_op = static_cast<int>(step_.operators(stage).size());
    else
      work.bytes = boundary_bytes(step_.step.model, step_.shape());
    work.suffix = suffix;
    bubble_work_.works.push_back(work);
    return known->second;
  }

  const TaskGraph& step_;
  const PricedCluster& cluster_;
  const Durations& durations_;
  BubbleWork bubble_work_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> pairs_;
  std::map<std::pair<int, std::string>, int> works_;
};

}  // namespace

BubbleWork evaluation_bubble_work(const TaskGraph& step, const PricedCluster& cluster, const Durations& durations,
                                  int micro_batches) {
  if (step.step.layout.tensor > 1 || step.step.layout.context > 1)
    throw std::invalid_argument(
        "evaluation in bubbles needs whole layers on a rank (tensor 1, context 1): sharded forwards "
        "communicate");
  return Maker(step, cluster, durations).run(micro_batches);
}

}  // namespace slipway::schedules
