// Names that two programs must agree on are written in one place: the launchers' variables (exec/run/launchers.h), the
// names of a run's files (exec/run/run_files.h).
#include <gtest/gtest.h>

#include <regex>

#include "tests/support/source_tree.h"

namespace slipway::test {
namespace {

// `owner`: a header and its source, without the ending.
void expect_only_in(const std::string& owner, const std::regex& spelling) {
  bool owner_spells_it = false;
  for (const SourceFile& file : source_tree()) {
    const std::string folder = top_folder(file.path);
    const bool code = file.path.ends_with(".h") || file.path.ends_with(".cpp");
    if (!code || (folder != "exec" && folder != "scenarios")) continue;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      if (!std::regex_search(file.lines[i], spelling)) continue;
      const bool is_owner = file.path == owner + ".h" || file.path == owner + ".cpp";
      EXPECT_TRUE(is_owner) << file.path << ":" << i + 1 << ": " << file.lines[i];
      owner_spells_it |= is_owner;
    }
  }
  EXPECT_TRUE(owner_spells_it) << "this test looks for what is not there any more";
}

TEST(SpelledOnce, VariablesByWhichSrunAndMpirunNumberTheirRanks) {
  expect_only_in("exec/run/launchers",
                 std::regex("\"(SLURM_PROCID|SLURM_NTASKS|SLURM_LOCALID|OMPI_COMM_WORLD_(RANK|SIZE|LOCAL_RANK))\""));
}

TEST(SpelledOnce, NamesOfTheFilesOfARun) {
  expect_only_in("exec/run/run_files", std::regex("\"/"
                                                  "(rank-|failure|run\\.slip|run\\.weights|trace\\.json|losses\\.csv)"
                                                  "\"|\"\\.(records|losses|error|done)\"|rank_file\\("));
}

}  // namespace
}  // namespace slipway::test
