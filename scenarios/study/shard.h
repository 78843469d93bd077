// A study on several machines. Each simulates the points whose index leaves the same rest, and writes them to a file of a
// shared folder. Merging reads the files of all shards and answers with the same bytes as one machine would.
//
//   study S --vary ... --shard 1/4 --into DIR ──► DIR/shard-1-of-4.json ──┐
//   ...                                                                   ├──► study S --vary ... --merge DIR
//   study S --vary ... --shard 4/4 --into DIR ──► DIR/shard-4-of-4.json ──┘
//
// Guarded by tests/scenarios/study_shard_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "scenarios/study/study.h"

namespace slipway::scenarios {

struct Shard {
  int number = 1, count = 1;  // number: from 1
};
// "2/8". Throws UsageError.
Shard shard_from(const std::string& text);

// What all shards of a study agree on: the words that name its points, and what the files of its scenarios hold.
struct StudyIdentity {
  std::string version;             // of slipway, because another may predict other times
  std::vector<std::string> words;  // scenarios, --set and --vary, in order
  std::vector<std::string> files;  // "PATH CHECKSUM" of each file read
};

std::vector<std::size_t> points_in(const Shard& shard, std::size_t points);
std::string shard_path(const std::string& folder, const Shard& shard);
// JSON. `rows` are those of points_in, in order.
std::string shard_text(const StudyIdentity& identity, const Shard& shard, const std::vector<StudyRow>& rows);

// The rows of all points from the files of the folder. Throws UsageError naming the first file that is missing, damaged,
// unfinished or of another study.
std::vector<StudyRow> merged_rows(const std::string& folder, const StudyIdentity& identity,
                                  const std::vector<StudyPoint>& points);

// A script for Slurm's sbatch: an array of `shards` tasks, and at its end the command that merges. `words`: the command
// line of this study without --emit, --shards and --into.
std::string slurm_script(const std::vector<std::string>& words, int shards, const std::string& folder);

}  // namespace slipway::scenarios
