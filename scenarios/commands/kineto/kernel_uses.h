// The computations of the kernels in a profiler's trace, from the operators that launched them and the shapes of their
// arguments.
//
//   aten::addmm (b [640], x [888, 2880], w [2880, 640])  ──►  product 888 x 640 x 2880, bfloat16
//
// One use is one call of an operator, with the sum of its kernels. The operators are a table in kernel_uses.cpp; a new one
// is a line there. Positions of arguments are those of PyTorch's schemas (native_functions.yaml of PyTorch 2.11).
// Guarded by tests/scenarios/kineto_test.cpp.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "models/model/dtype.h"
#include "models/model/names.h"
#include "models/model/operators.h"
#include "scenarios/commands/kineto/kineto_trace.h"

namespace slipway::scenarios {

enum class UseKind : std::uint8_t { product, attention, message, element_wise, optimizer, copy, other };
inline constexpr std::array use_names{
    Named{UseKind::product, "product"},     Named{UseKind::attention, "attention"},
    Named{UseKind::message, "message"},     Named{UseKind::element_wise, "element-wise"},
    Named{UseKind::optimizer, "optimizer"}, Named{UseKind::copy, "copy"},
    Named{UseKind::other, "other"}};

struct KernelUse {
  UseKind kind = UseKind::other;
  std::int32_t op = nothing;     // index in KinetoTrace::operators; nothing: a kernel without one
  std::int32_t first = nothing;  // its first kernel
  int kernels = 0;
  double seconds = 0;    // sum of the kernels
  double beside_s = 0;   // part of it during which a message moved too
  bool is_tf32 = false;  // its kernel's name says so
};

// In order of the first kernel.
std::vector<KernelUse> kernel_uses(const KinetoTrace& trace);

// "aten::mm", "message allreduce", or the kernel's name without template arguments.
std::string name_of(const KinetoTrace& trace, const KernelUse& use);

struct ProductShape {
  double m = 0, n = 0, k = 0;
  Dtype dtype = Dtype::bfloat16;
};
struct AttentionCall {
  double sequences = 0, heads = 0, tokens = 0, head_dim = 0;
  bool backward = false;
  Dtype dtype = Dtype::bfloat16;
};
struct Traffic {
  double bytes = 0;  // that are read and written
  Dtype dtype = Dtype::bfloat16;
};
struct Updated {
  double parameters = 0;
  Dtype dtype = Dtype::bfloat16;
};
struct MessageCall {
  Collective collective = Collective::none;
  double bytes = 0;  // as ring_seconds() counts them (models/machine/ring.h)
  int members = 0;
};

// A use's shape, or why it has none that constants are fitted to: "not causal".
template <typename Shape>
struct Seen {
  std::optional<Shape> shape;
  std::string why;
};

Seen<ProductShape> product_of(const KinetoTrace& trace, const KernelUse& use);
Seen<AttentionCall> attention_of(const KinetoTrace& trace, const KernelUse& use);  // causal, of equal lengths
Seen<Traffic> traffic_of(const KinetoTrace& trace, const KernelUse& use);
Seen<Updated> update_of(const KinetoTrace& trace, const KernelUse& use);
Seen<MessageCall> message_of(const KinetoTrace& trace, const KernelUse& use);

// True for a kernel that moves data between ranks.
bool is_message(const KinetoTrace& trace, const KinetoKernel& kernel);

}  // namespace slipway::scenarios
