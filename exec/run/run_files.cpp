#include "exec/run/run_files.h"

namespace slipway::exec {

std::string rank_file(const std::string& folder, int rank, const std::string& suffix) {
  return folder + "/rank-" + std::to_string(rank) + "." + suffix;
}

}  // namespace slipway::exec
