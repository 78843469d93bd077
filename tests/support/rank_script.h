// execute and confirm with a shell script as the rank program: fast, and every failure can be arranged.
#pragma once

#include <cstdlib>

#include "models/trace/trace.h"
#include "tests/support/command_test.h"

namespace slipway::test {

class RankScriptTest : public CommandTest {
 protected:
  void SetUp() override {
    CommandTest::SetUp();
    for (const char* name : {"RANK", "WORLD_SIZE", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"}) ::unsetenv(name);
  }
  void TearDown() override {
    for (const char* name : {"SLIPWAY_RANK", "RANK", "WORLD_SIZE"}) ::unsetenv(name);
    CommandTest::TearDown();
  }

  // The rank program from now on: `body` sees RANK, BUNDLE and OUT.
  void rank_script(const std::string& body, const std::string& name = "rank.sh") const {
    std::ofstream(path(name)) << "#!/bin/sh\nBUNDLE=$1 OUT=$3\n" << body << '\n';
    std::filesystem::permissions(path(name), std::filesystem::perms::owner_all);
    ::setenv("SLIPWAY_RANK", path(name).c_str(), 1);
  }

  // Records of `steps` steps as a rank writes them, for the script to copy. The two ranks meet in one transfer: rank 1
  // waits 1 s for it.
  void prepare_records(int steps) const {
    for (int rank = 0; rank < 2; ++rank) {
      std::ofstream out(path("ready-" + std::to_string(rank)));
      for (int k = 0; k < steps; ++k) {
        const double at = 10.0 * k;
        out << to_text({k, rank, "compute", std::to_string(rank) + "F0", "forward", at + rank, at + 4, 0, 8, 0, -1})
            << '\n'
            << to_text({k, rank, "pp.forward.0-1", "0F0.send", "transfer", at + 5 - rank, at + 6, 0, 0, 64, 0}) << '\n';
      }
    }
    std::ofstream losses(path("ready-losses"));
    for (int k = 0; k < steps; ++k) losses << k << ' ' << 8 * (k + 1) << ' ' << 5.5 - k << " 0.003\n";
  }
  std::string copying_script() const {
    return "cp " + path("ready-") + "$RANK $OUT/rank-$RANK.records\n[ $RANK = 0 ] && cp " + path("ready-losses") +
           " $OUT/rank-0.losses\necho hello from $RANK";
  }
};

}  // namespace slipway::test
