#include "models/operators.h"

namespace slipway {

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

const char* name_of(Collective collective) {
  switch (collective) {
    case Collective::none:
      return "none";
    case Collective::all_gather:
      return "all-gather";
    case Collective::reduce_scatter:
      return "reduce-scatter";
    case Collective::all_reduce:
      return "all-reduce";
    case Collective::broadcast:
      return "broadcast";
    case Collective::send:
      return "send";
    case Collective::all_to_all:
      return "all-to-all";
    case Collective::shift:
      return "shift";
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
  }
  return "unknown";
}

}  // namespace slipway
