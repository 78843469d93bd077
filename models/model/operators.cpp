#include "models/model/operators.h"

#include <algorithm>
#include <stdexcept>

#include "models/model/operator_cost.h"
#include "models/model/token_ranges.h"

namespace slipway::models {

namespace {

using SetCost = void (*)(Operator&, const CostInput&);

// Appends the operators of one block.
class BlockWriter {
 public:
  BlockWriter(std::vector<Operator>& list, const Block& block, int index, const WorkShape& shape)
      : list_(list),
        in_{block, shape, tokens_of(shape),
            with_capacity(largest_load(block, shape.routing, index, shape.sharding.expert), shape.routing)},
        index_(index) {}

  void write() {
    switch (in_.block.kind) {
      case BlockKind::embedding:
        return embedding();
      case BlockKind::transformer:
        return transformer();
      case BlockKind::head:
        return head();
    }
  }

 private:
  bool tensor() const { return in_.shape.sharding.tensor > 1; }
  bool sequence_parallel() const { return in_.shape.sharding.sequence_parallel; }
  bool context() const { return in_.shape.sharding.context > 1; }
  bool dispatches() const { return slipway::models::dispatches(in_.shape.sharding); }

  void compute(OpKind kind, const char* part, Wires reads, Wires writes, SetCost set_cost, int round = 0) {
    Operator op;
    op.kind = kind;
    op.block = index_;
    op.part = part;
    op.reads = reads, op.writes = writes;
    op.dtype = in_.shape.dtype;
    op.round = round;
    set_cost(op, in_);
    list_.push_back(op);
  }

  void communicate(const char* part, Axis axis, Wires wire, Collective forward, Collective backward, double numbers) {
    Operator op;
    op.kind = OpKind::communicate;
    op.block = index_;
    op.part = part;
    op.reads = op.writes = op.wire = wire;
    op.axis = axis;
    op.forward = forward, op.backward = backward;
    const bool statistics = wire == wire_statistics;
    op.dtype = statistics && bytes_of(in_.shape.dtype) < 4 ? Dtype::float32 : in_.shape.dtype;
    op.message_bytes = numbers * bytes_of(op.dtype);
    op.kernels = 0;
    list_.push_back(op);
  }

  // Before a column-parallel projection, because every tensor rank needs the whole sequence.
  void enter_tensor(const char* gather, const char* reduce, Wires wire = wire_branch) {
    enter_tensor_with(hidden_numbers(), gather, reduce, wire);
  }
  void enter_tensor_with(double numbers, const char* gather, const char* reduce, Wires wire = wire_branch) {
    if (!tensor()) return;
    const bool sp = sequence_parallel();
    communicate(sp ? gather : reduce, Axis::tensor, wire, sp ? Collective::all_gather : Collective::none,
                sp ? Collective::reduce_scatter : Collective::all_reduce, numbers);
  }

  // After a row-parallel projection (or a vocabulary shard of the embedding): the sum over the tensor ranks.
  void leave_tensor(const char* scatter, const char* reduce, Wires wire) {
    if (!tensor()) return;
    const bool sp = sequence_parallel();
    communicate(sp ? scatter : reduce, Axis::tensor, wire, sp ? Collective::reduce_scatter : Collective::all_reduce,
                sp ? Collective::all_gather : Collective::none, hidden_numbers());
  }

  // The same around Linears of layers, whose inputs and gradients may be gathered in a narrow format.
  void enter_linear(const char* gather, const char* reduce, Wires wire = wire_branch) {
    enter_linear_with(hidden_numbers(), gather, reduce, wire);
  }
  void enter_linear_with(double numbers, const char* gather, const char* reduce, Wires wire = wire_branch) {
    enter_tensor_with(numbers, gather, reduce, wire);
    if (gathers_narrow(in_)) list_.back().forward_sent = share_of(NarrowMessage::input);
  }
  void leave_linear(const char* scatter, const char* reduce, Wires wire) {
    leave_tensor(scatter, reduce, wire);
    if (gathers_narrow(in_)) list_.back().backward_sent = share_of(NarrowMessage::gradient);
  }
  double share_of(NarrowMessage message) const {
    const WorkShape& shape = in_.shape;
    return message_bytes(shape.narrow, shape.habits, message, shape.dtype) / bytes_of(shape.dtype);
  }

  double hidden_numbers() const { return static_cast<double>(in_.tokens.whole * in_.block.hidden); }

  void embedding() {
    compute(OpKind::embed, "embed", 0, wire_residual, set_embed);
    leave_tensor("rs_embed", "ar_embed", wire_residual);
    if (in_.block.positions == Positions::learned)
      compute(OpKind::add_positions, "positions", wire_residual, wire_residual, set_add_positions);
    if (in_.block.post_norm || in_.block.embedding_norm)
      compute(OpKind::norm, "norm0", wire_residual, wire_residual, set_norm);
  }

  void begin_sublayer(const char* norm, const char* fork) {
    if (forks(in_.block))
      compute(OpKind::fork, fork, wire_residual, wire_branch, set_fork);
    else
      compute(OpKind::norm, norm, wire_residual, wire_branch, set_norm);
  }

  void end_sublayer(const char* add, const char* norm, const char* result_norm) {
    if (in_.block.norms != NormPlace::input) compute(OpKind::norm, result_norm, wire_branch, wire_branch, set_norm);
    compute(OpKind::add, add, wire_residual | wire_branch, wire_residual, set_add);
    if (in_.block.post_norm) compute(OpKind::norm, norm, wire_residual, wire_residual, set_norm);
  }

  // Queries, keys and values of this tensor rank's heads, from what the sub-layer reads.
  void project_heads(Wires projected) {
    if (!is_latent(in_.block)) {
      compute(OpKind::qkv, "qkv", wire_branch, projected, set_qkv);
      return;
    }
    if (in_.block.q_latent > 0) compute(OpKind::compress, "q_down", wire_branch, wire_branch, set_query_latent);
    compute(OpKind::compress, "kv_down", wire_branch, wire_branch, set_key_value_latent);
    enter_linear_with(latent_numbers(), "ag1", "ar1");
    compute(OpKind::expand, "kv_up", wire_branch, projected, set_keys_values);
    compute(OpKind::expand, "q_up", wire_branch, wire_branch, set_queries);
  }

  // Numbers gathered in place of the input: both latents and the keys' rotary part. Queries without a latent need the
  // input too.
  double latent_numbers() const {
    const Block& block = in_.block;
    const std::int64_t queries = block.q_latent > 0 ? block.q_latent : block.hidden;
    return static_cast<double>(in_.tokens.whole * (queries + block.kv_latent + block.rope_head_dim));
  }

  void attention() {
    if (!is_latent(in_.block)) enter_linear("ag1", "ar1");
    attention_of_gathered();
  }
  void attention_of_gathered() {
    if (context() && in_.shape.sharding.exchange == ContextExchange::ring) return attention_around_ring();
    const Wires projected = context() ? wire_branch | wire_kv : wire_branch;
    project_heads(projected);
    if (context()) {
      communicate("ag_kv", Axis::context, wire_kv, Collective::all_gather, Collective::reduce_scatter,
                  key_value_numbers() * in_.shape.sharding.context);
    }
    compute(OpKind::attention, "attn", projected, wire_branch, set_attention);
    compute(OpKind::out_projection, "out", wire_branch, wire_branch, set_out_projection);
  }

  // Numbers in the keys and values of this rank's tokens.
  double key_value_numbers() const {
    return static_cast<double>(in_.tokens.whole * kv_heads_of_rank(in_.block, in_.shape.sharding.tensor) *
                               (in_.block.head_dim + value_dim(in_.block)));
  }

  void attention_around_ring() {
    project_heads(wire_branch | wire_kv);
    // Backward, the gradient that came home is added to the own round's: two are read and one is written.
    list_.back().elementwise_backward_bytes += 3 * key_value_numbers() * bytes_of(in_.shape.dtype);
    for (int round = 0; round < in_.shape.sharding.context; ++round) {
      if (round > 0) {
        communicate("ring_kv", Axis::context, wire_kv, Collective::shift, Collective::shift, key_value_numbers());
        list_.back().round = round;
        list_.back().backward_messages = 2;
      }
      compute(OpKind::ring_attention, "attn", wire_branch | wire_kv, wire_branch, set_ring_attention, round);
    }
    compute(OpKind::out_projection, "out", wire_branch, wire_branch, set_out_projection);
  }

  void transformer() {
    if (in_.block.parallel != Parallel::none) return side_by_side();
    begin_sublayer("norm1", "fork1");
    attention();
    leave_linear("rs1", "ar2", wire_branch);
    end_sublayer("add1", "norm1", "result_norm1");
    begin_sublayer("norm2", "fork2");
    if (in_.block.experts > 0 && dispatches()) {
      dispatched_experts();
    } else if (in_.block.experts > 0) {
      enter_tensor("ag2", "ar3");
      experts();
      leave_tensor("rs2", "ar4", wire_branch);
    } else {
      enter_linear("ag2", "ar3");
      mlp("mlp", "act", "down", wire_branch, set_up, set_down);
      leave_linear("rs2", "ar4", wire_branch);
    }
    end_sublayer("add2", "norm2", "result_norm2");
  }

  void side_by_side() {
    const bool two_norms = in_.block.parallel == Parallel::two_norms;
    compute(OpKind::norm, "norm1", wire_residual, wire_branch, set_norm);
    if (two_norms) {
      compute(OpKind::norm, "norm2", wire_residual, wire_shared, set_norm);
      enter_tensor("ag2", "ar3", wire_shared);
      attention();
    } else {
      enter_tensor("ag1", "ar1");
      compute(OpKind::share, "share", wire_branch, wire_shared, set_share);
      attention_of_gathered();
    }
    mlp("mlp", "act", "down", wire_shared, set_up, set_down);
    compute(OpKind::join, "join", wire_branch | wire_shared, wire_branch, set_join);
    leave_tensor("rs1", "ar2", wire_branch);
    end_sublayer("add1", "norm1", "result_norm1");
  }

  void mlp(const char* up, const char* act, const char* down, Wires wire, SetCost set_up_cost, SetCost set_down_cost) {
    compute(OpKind::up, up, wire, wire, set_up_cost);
    compute(OpKind::activation, act, wire, wire, set_activation);
    compute(OpKind::down, down, wire, wire, set_down_cost);
  }

  bool shared() const { return in_.block.shared_ffn > 0; }
  bool balances() const { return in_.shape.routing.balancing_loss > 0; }
  // Choices of each expert over the ranks that route tokens which are balanced together.
  void sum_loads() {
    const Routing& routing = in_.shape.routing;
    const auto sum = [&](const char* part, Axis axis) {
      communicate(part, axis, wire_statistics, Collective::all_reduce, Collective::none,
                  static_cast<double>(in_.block.experts * balanced_parts(routing, in_.shape.micro_batch)));
    };
    if (dispatches() && tensor()) sum("ar_load_tp", Axis::tensor);
    if (in_.shape.sharding.context > 1) sum("ar_load_cp", Axis::context);
    if (balanced_replicas(routing, in_.shape.micro_batch) > 1) sum("ar_load_dp", Axis::data);
  }
  void shared_experts() { mlp("mlp_s", "act_s", "down_s", wire_shared, set_up, set_down); }
  void begin_experts() {
    if (shared()) compute(OpKind::share, "share", wire_branch, wire_shared, set_share);
    compute(OpKind::route, "router", wire_branch, wire_branch | wire_gates | (balances() ? wire_statistics : 0),
            set_route);
  }
  void end_experts() {
    if (balances()) sum_loads();
    const Wires results = wire_branch | wire_gates | (shared() ? wire_shared : 0) | (balances() ? wire_statistics : 0);
    compute(OpKind::combine, "combine", results, wire_branch, set_combine);
  }

  void experts() {
    begin_experts();
    if (shared()) shared_experts();
    mlp("mlp", "act", "down", wire_branch, set_expert_up, set_expert_down);
    end_experts();
  }

  void dispatched_experts() {
    const Sharding& cut = in_.shape.sharding;
    const int e = cut.expert, t = expert_tensor_of(cut);
    const bool gathers = e > 1 && cut.dispatcher == Dispatcher::allgather;
    const double gathered = static_cast<double>(in_.tokens.sharded * in_.block.hidden * e);
    const double sent = in_.load * static_cast<double>(dispatched_rows(in_) * in_.block.hidden);
    begin_experts();
    if (gathers)
      communicate("dispatch", Axis::expert, wire_branch, Collective::all_gather, Collective::reduce_scatter, gathered);
    else if (e > 1)
      communicate("dispatch", Axis::expert, wire_branch, Collective::all_to_all, Collective::all_to_all, sent);
    if (dispatches_narrow(in_)) list_.back().forward_sent = share_of(NarrowMessage::tokens);
    if (t > 1)
      communicate("ag_experts", Axis::expert_tensor, wire_branch, Collective::all_gather, Collective::reduce_scatter,
                  sent * t);
    if (shared()) {
      enter_linear("ag_s", "ar_s", wire_shared);
      shared_experts();
      // Without a sum over tensor ranks, a cut: the experts' rows may still be on their way.
      if (tensor())
        leave_linear("rs_s", "ar_s2", wire_shared);
      else
        communicate("shared", Axis::tensor, wire_shared, Collective::none, Collective::none, hidden_numbers());
    }
    mlp("mlp", "act", "down", wire_branch, set_expert_up, set_expert_down);
    if (t > 1)
      communicate("rs_experts", Axis::expert_tensor, wire_branch, Collective::reduce_scatter, Collective::all_gather,
                  sent * t);
    if (gathers)
      communicate("combine_rows", Axis::expert, wire_branch, Collective::reduce_scatter, Collective::all_gather,
                  gathered);
    else if (e > 1)
      communicate("combine_rows", Axis::expert, wire_branch, Collective::all_to_all, Collective::all_to_all, sent);
    if (dispatches_narrow(in_)) list_.back().backward_sent = share_of(NarrowMessage::tokens);
    end_experts();
  }

  void head() {
    if (in_.block.post_norm)
      compute(OpKind::fork, "fork_f", wire_residual, wire_branch, set_fork);
    else
      compute(OpKind::norm, "norm_f", wire_residual, wire_branch, set_norm);
    if (in_.block.post_norm) compute(OpKind::head_transform, "transform", wire_branch, wire_branch, set_head_transform);
    tokens_and_loss("ag_head", "ar_head", "head", "ag_loss", "loss", 0);
    if (in_.block.predicted_tokens > 0) prediction();
  }

  void tokens_and_loss(const char* gather, const char* reduce, const char* logits, const char* gather_loss,
                       const char* loss, Wires losses) {
    enter_tensor(gather, reduce);
    const Wires statistics = tensor() ? wire_statistics : 0;
    compute(OpKind::logits, logits, wire_branch, wire_branch | statistics, set_logits);
    if (tensor())  // maximum, sum of exponentials and target logit per token, from every vocabulary shard
      communicate(gather_loss, Axis::tensor, wire_statistics, Collective::all_gather, Collective::none,
                  3.0 * static_cast<double>(in_.tokens.whole * in_.shape.sharding.tensor));
    compute(OpKind::loss, loss, wire_branch | statistics | losses, wire_loss, set_loss);
  }

  // The module reads the last layer's result and the embedding of the token that was predicted.
  void prediction() {
    compute(OpKind::embed, "embed_m", 0, wire_branch, set_embed);
    leave_tensor("rs_embed_m", "ar_embed_m", wire_branch);
    compute(OpKind::project, "project_m", wire_residual | wire_branch, wire_residual, set_project);
    transformer();
    compute(OpKind::norm, "norm_m", wire_residual, wire_branch, set_norm);
    tokens_and_loss("ag_head_m", "ar_head_m", "head_m", "ag_loss_m", "loss_m", wire_loss);
  }

  std::vector<Operator>& list_;
  CostInput in_;
  int index_;
};

void require_multiple(const Model& model, const char* what, std::int64_t size, int tensor) {
  if (size % tensor != 0)
    throw std::invalid_argument("model " + model.name + ": " + what + " = " + std::to_string(size) +
                                " cannot be divided by tensor = " + std::to_string(tensor) +
                                "; choose a tensor degree that divides it");
}

void check_divisible(const Model& model, const Block& block, const Sharding& cut) {
  const int tensor = cut.tensor;
  if (block.kind != BlockKind::transformer) require_multiple(model, "vocab", block.vocab, tensor);
  if (block.kind == BlockKind::transformer || block.predicted_tokens > 0) {
    if (tensor > 1 && block.qk_norm && block.qk_norm_over == QkNorm::all)
      throw std::invalid_argument("model " + model.name +
                                  ": its norms of queries and keys go over all heads, which tensor = " +
                                  std::to_string(tensor) + " divides among ranks; choose tensor 1");
    require_multiple(model, "heads", block.heads, tensor);
    if (block.kv_heads < 1 || tensor % block.kv_heads != 0) require_multiple(model, "kv_heads", block.kv_heads, tensor);
    if (block.experts == 0) return require_multiple(model, "ffn", block.ffn, tensor);
    require_multiple(model, "ffn", block.ffn, expert_tensor_of(cut));
    require_multiple(model, "shared_ffn", block.shared_ffn, tensor);
    if (block.experts % cut.expert != 0)
      throw std::invalid_argument("model " + model.name + ": experts = " + std::to_string(block.experts) +
                                  " cannot be divided among expert = " + std::to_string(cut.expert) +
                                  " ranks; choose an expert degree that divides them");
  }
}

void check_pieces(const Model& model, const WorkShape& shape) {
  const std::int64_t pieces = pieces_of(is_causal(model), shape.sharding.context);
  if (shape.sequence % pieces != 0)
    throw std::invalid_argument("sequence of " + std::to_string(shape.sequence) + " tokens cannot be cut into " +
                                std::to_string(pieces) +
                                " equal pieces, two for each context rank of a causal "
                                "model; change the sequence or the context degree");
}

}  // namespace

std::vector<Operator> operators_of(const Model& model, int first, int last, const WorkShape& shape) {
  const std::vector<Block> blocks = blocks_of(model);
  if (first < 0 || last < first || last > static_cast<int>(blocks.size()))
    throw std::invalid_argument("model " + model.name + " has " + std::to_string(blocks.size()) + " blocks; [" +
                                std::to_string(first) + ", " + std::to_string(last) + ") is no range of them");
  tokens_of(shape);  // refuses impossible degrees
  check_pieces(model, shape);
  std::vector<Operator> list;
  for (int index = first; index < last; ++index) {
    const Block& block = blocks[index];
    check_divisible(model, block, shape.sharding);
    const std::size_t begin = list.size();
    BlockWriter(list, block, index, shape).write();
    apply_levers(std::span(list).subspan(begin), block, shape);
  }
  return list;
}

int gather_before(std::span<const Operator> operators, int first) {
  if (first == 0) return -1;
  const Operator& op = operators[first - 1];
  return gathers_input(op) || gathers_keys_values(op) ? first - 1 : -1;
}

double boundary_bytes(const Model& model, const WorkShape& shape) {
  const Block& block = model.runs.front().block;
  return static_cast<double>(tokens_of(shape).sharded * block.hidden) * bytes_of(shape.dtype);
}

const char* name_of(OpKind kind) {
  switch (kind) {
    case OpKind::embed:
      return "embed";
    case OpKind::add_positions:
      return "add_positions";
    case OpKind::norm:
      return "norm";
    case OpKind::fork:
      return "fork";
    case OpKind::qkv:
      return "qkv";
    case OpKind::compress:
      return "compress";
    case OpKind::expand:
      return "expand";
    case OpKind::attention:
      return "attention";
    case OpKind::ring_attention:
      return "ring_attention";
    case OpKind::out_projection:
      return "out_projection";
    case OpKind::route:
      return "route";
    case OpKind::add:
      return "add";
    case OpKind::up:
      return "up";
    case OpKind::activation:
      return "activation";
    case OpKind::down:
      return "down";
    case OpKind::share:
      return "share";
    case OpKind::join:
      return "join";
    case OpKind::project:
      return "project";
    case OpKind::combine:
      return "combine";
    case OpKind::head_transform:
      return "head_transform";
    case OpKind::logits:
      return "logits";
    case OpKind::loss:
      return "loss";
    case OpKind::communicate:
      return "communicate";
  }
  return "unknown";
}

const char* name_of(Axis axis) {
  switch (axis) {
    case Axis::tensor:
      return "tensor";
    case Axis::context:
      return "context";
    case Axis::data:
      return "data";
    case Axis::pipeline:
      return "pipeline";
    case Axis::embedding:
      return "embedding";
    case Axis::world:
      return "world";
    case Axis::expert:
      return "expert";
    case Axis::expert_tensor:
      return "expert_tensor";
    case Axis::expert_data:
      return "expert_data";
    case Axis::host:
      return "host";
  }
  return "unknown";
}

}  // namespace slipway::models
