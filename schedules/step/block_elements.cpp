#include "schedules/step/block_elements.h"

namespace slipway::schedules {

std::vector<BlockElements> elements_of_blocks(const Step& step, bool shares_table) {
  std::vector<BlockElements> elements;
  for (const BlockRun& run : step.model->runs)
    elements.insert(elements.end(), static_cast<std::size_t>(run.count),
                    elements_of_block(step, static_cast<int>(elements.size()), shares_table));
  return elements;
}

}  // namespace slipway::schedules
