#include "schedules/shared_table.h"

namespace slipway {

bool shares_table(const Model& model, const Layout& layout, const Placement& placement) {
  if (!model.runs.back().block.tied || placement.rank.empty()) return false;
  if (layout.zero >= 2 && layout.data * layout.context > 1) return false;
  return placement.rank.front() == placement.rank[static_cast<std::size_t>(placement.parts() - 1)];
}

}  // namespace slipway
