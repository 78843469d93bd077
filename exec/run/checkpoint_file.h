// The shards of a checkpoint: what one rank wrote, readable for the others in any layout.
//
//   shard-<r>.index   a line each:
//                     "entry <parameter> <dtype> <rows> <columns> <shard_dim> <from> <to> <updates> <offset> <checksum>
//                     <pieces> <begin> <end> ... [across <begin> <end>]"  or  "matrix <name> <dtype> <rows> <columns> <offset> <checksum>"
//   shard-<r>.data    per entry: master weights, first moments, second moments, [from, to) of each
//                     per matrix: its elements in row-major order
//
// An entry is a part of one tensor-parallel shard of one parameter. The shard is the concatenation of `pieces` along
// shard_dim (models/model/parameters.h). `across` is its range of the other dimension where that is not all of it: the
// rows of some experts. The entry has [from, to) of its elements in row-major order: all, or a ZeRO
// slice. So shards of any layout combine to whole parameters, which can be cut anew. A matrix is further optimizer
// state, whole, from the one rank that has it (K-FAC's inverses, exec/rank/kfac.h).
// Plain C++, because `slipway execute` reads weights from it. Guarded by tests/exec/checkpoint_file_test.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "exec/run/checkpoint_folder.h"
#include "models/model/dtype.h"
#include "models/model/parameters.h"

namespace slipway::exec {

struct CheckpointEntry {
  std::string parameter;               // unique in the model
  Dtype dtype = Dtype::float32;        // of masters and moments
  std::int64_t rows = 0, columns = 0;  // of the whole parameter
  int shard_dim = -1;
  std::vector<Piece> pieces;  // all rows for a parameter that is not cut
  Piece across;               // along the other dimension; when written, 0 to 0 stands for all of it
  std::int64_t from = 0, to = 0;
  std::int64_t updates = 0;  // optimizer steps so far

  std::int64_t bytes_each() const { return (to - from) * bytes_of(dtype); }
};

struct CheckpointMatrix {
  std::string name;  // unique in the model
  Dtype dtype = Dtype::float32;
  std::int64_t rows = 0, columns = 0;

  std::int64_t bytes() const { return rows * columns * bytes_of(dtype); }
};

class ShardWriter {
 public:
  // `folder`: the existing partial folder.
  ShardWriter(const std::string& folder, int rank);
  // Removes an unfinished shard: on a full disk it would take the room of the run's records and messages.
  ~ShardWriter();
  // Both throw std::runtime_error with the file and the system's reason (a full disk).
  void add(const CheckpointEntry& entry, std::string_view masters, std::string_view first_moments,
           std::string_view second_moments);
  void add(const CheckpointMatrix& matrix, std::string_view elements);
  // Syncs everything to the disk and returns the index's checksum. Without entries it makes no file.
  std::optional<std::uint64_t> finish();

 private:
  void write(std::string_view bytes);
  std::string index_path_, data_path_, index_;
  int data_ = -1;
  bool finished_ = false;
  std::uint64_t offset_ = 0;
};

struct StoredEntry : CheckpointEntry {
  int shard = 0;
  std::uint64_t offset = 0, checksum = 0;
};

struct StoredMatrix : CheckpointMatrix {
  int shard = 0;
  std::uint64_t offset = 0, checksum = 0;
};

// The entries of all shards. Reading one verifies its checksum.
class CheckpointReader {
 public:
  // Throws std::runtime_error with the missing or damaged file.
  explicit CheckpointReader(const std::string& checkpoint);
  const Manifest& manifest() const { return manifest_; }
  const std::string& folder() const { return folder_; }
  // By parameter.
  const std::map<std::string, std::vector<StoredEntry>>& entries() const { return entries_; }
  const std::map<std::string, StoredMatrix>& matrices() const { return matrices_; }
  std::vector<StoredEntry> entries_of(const std::string& parameter) const;
  // Names in all entries.
  std::vector<std::string> parameters() const;
  // Masters, first and second moments one after another.
  std::string read(const StoredEntry& entry) const;
  // Null for an unknown name.
  const StoredMatrix* matrix(const std::string& name) const;
  std::string read(const StoredMatrix& matrix) const;

 private:
  std::string read(int shard, std::uint64_t offset, std::int64_t bytes, std::uint64_t checksum,
                   const std::string& name) const;
  std::string folder_;
  Manifest manifest_;
  std::map<std::string, std::vector<StoredEntry>> entries_;
  std::map<std::string, StoredMatrix> matrices_;
};

// The reason why a checkpoint cannot be resumed from: a missing or damaged file. Empty: it is whole. Reads all of it.
std::string why_not_whole(const std::string& checkpoint);

// The checkpoint that --resume if-any takes.
struct NewestWhole {
  std::string checkpoint;            // empty: the run has none yet
  std::vector<std::string> damaged;  // why newer ones were left out
};
// Throws std::runtime_error where the run has checkpoints, but none is whole.
NewestWhole newest_whole_checkpoint(const std::string& run_folder);

// A parameter with its optimizer state, combined from all shards: masters, first and second moments, each the whole
// parameter row by row.
struct WholeParameter {
  Dtype dtype = Dtype::float32;
  std::int64_t updates = 0;
  std::array<std::string, 3> parts;
};
// Throws std::runtime_error when the checkpoint lacks the parameter, has another shape of it, or has parts of it
// missing or twice.
WholeParameter whole_parameter(const CheckpointReader& checkpoint, const Parameter& parameter);

// Writes `text` and syncs it to the disk. Throws as ShardWriter does.
void write_durably(const std::string& path, std::string_view text);
// Makes a rename or a new file of `folder` durable.
void sync_folder(const std::string& folder);

}  // namespace slipway::exec
