// A long command on several machines. Each does every N-th part of the work from the I-th on and writes it to a file of a
// shared folder. Merging reads the files of all shards and answers as one machine would, but for how long it took.
//
//   COMMAND --shard 1/4 --into DIR ──► DIR/shard-1-of-4.json ──┐
//   ...                                                        ├──► COMMAND --merge DIR
//   COMMAND --shard 4/4 --into DIR ──► DIR/shard-4-of-4.json ──┘
//
// Guarded by tests/scenarios/study_shard_test.cpp and tests/scenarios/plan_shard_test.cpp.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "scenarios/commands/command_line/options.h"
#include "scenarios/search/shard.h"

namespace slipway::scenarios {

// "2/8". Throws UsageError.
Shard shard_from(const std::string& text);
std::string shard_path(const std::string& folder, const Shard& shard);

// The common identity of all shards of a command: its words, and the contents of the files that they name.
struct ShardIdentity {
  std::string version;             // of slipway, because another may predict other times
  std::vector<std::string> words;  // that name the work, in order
  std::vector<std::string> files;  // "PATH CHECKSUM" of each file read
};
// The identity of `command` with these words, which read these files.
ShardIdentity identity_of(std::vector<std::string> words, const std::set<std::string>& files);

// The result of one part of the work. NaN: absent.
struct ShardRow {
  std::size_t part = 0;
  std::string error = {};
  std::vector<double> values = {};
};
// JSON.
std::string shard_text(const ShardIdentity& identity, const Shard& shard, const std::vector<ShardRow>& rows);
// The rows of all shards in the folder, each with an error or so many values. `points`: the number of parts, where every
// one has a row. Throws UsageError naming the first file that is missing, damaged, unfinished or of other work.
std::vector<ShardRow> merged_rows(const std::string& folder, const ShardIdentity& identity, std::size_t values,
                                  std::optional<std::size_t> points);

// --shard, --into, --merge, --emit slurm, --shards. `parts`: "point", "layout"; `emits`: more values of --emit.
void declare_shard_options(CommandOptions& options, const std::string& parts, const std::string& emits = "");
// Refuses combinations that mean nothing. `outputs`: options that a shard has no answer for. Throws UsageError.
void check_shard_options(const CommandOptions& options, const std::vector<std::string>& outputs);
bool emits_slurm(const CommandOptions& options);
// Writes the shard's file to --into, whole or not at all, and returns its path.
std::string write_shard(const CommandOptions& options, const ShardIdentity& identity,
                        const std::vector<ShardRow>& rows);
// Makes the folder of --into before the work begins. Throws UsageError.
void make_shard_folder(const CommandOptions& options);

// A script for Slurm's sbatch: an array of --shards tasks, and at its beginning the command that merges. `args`: the
// arguments of this command line. `task_words`: what its tasks add.
std::string slurm_script(const std::string& command, const std::vector<std::string>& args,
                         const CommandOptions& options, const std::string& task_words);

}  // namespace slipway::scenarios
