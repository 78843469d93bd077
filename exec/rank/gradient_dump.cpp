#include "exec/rank/gradient_dump.h"

#include <ATen/ATen.h>

#include <iomanip>
#include <ostream>

namespace slipway::exec {

void write_gradients(std::ostream& out, const BlockParameters& block, const at::Tensor& gradient, std::int64_t begin,
                     std::int64_t end) {
  out << std::setprecision(17);
  for (const ShardedParameter& parameter : block.parameters) {
    const auto [from, to] = range_within(parameter, begin, end);
    if (from >= to || parameter.meta.balances) continue;  // a load is no gradient
    out << "parameter " << parameter.meta.name << ' ' << parameter.meta.shape[0] << ' ' << parameter.meta.shape[1]
        << ' ' << c10::toString(gradient.scalar_type()) << " shard " << parameter.meta.shard_dim << ' '
        << parameter.pieces.size();
    for (const Piece& piece : parameter.pieces) out << ' ' << piece.begin << ' ' << piece.end;
    out << " across " << parameter.across.begin << ' ' << parameter.across.end << " slice " << from - parameter.offset
        << ' ' << to - parameter.offset << '\n';
    const at::Tensor values = gradient.narrow(0, from - begin, to - from).to(at::kCPU, at::kDouble).contiguous();
    const double* value = values.const_data_ptr<double>();
    for (std::int64_t i = 0; i < to - from; ++i) out << value[i] << (i + 1 < to - from ? ' ' : '\n');
  }
}

}  // namespace slipway::exec
