#include "exec/run/checkpoint_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "exec/run/checksum.h"
#include "exec/run/whole_file.h"

namespace slipway::exec {
namespace {

[[noreturn]] void fail(const std::string& path) {
  throw std::runtime_error("cannot write " + path + ": " + std::strerror(errno) +
                           "; the checkpoint is not complete, earlier ones are untouched");
}

// Replaces what an interrupted attempt left. O_EXCL does not follow a link that another user put there.
int open_new(const std::string& path) {
  ::unlink(path.c_str());
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0) fail(path);
  return file;
}

void sync_and_close(int file, const std::string& path) {
  const bool synced = ::fsync(file) == 0;
  if (::close(file) != 0 || !synced) fail(path);
}

Piece across_all(const CheckpointEntry& e) { return {0, e.shard_dim == 1 ? e.rows : e.columns}; }

std::string line_of(const CheckpointEntry& e, std::uint64_t offset, std::uint64_t checksum) {
  std::ostringstream line;
  line << "entry " << e.parameter << ' ' << name_of(e.dtype) << ' ' << e.rows << ' ' << e.columns << ' ' << e.shard_dim
       << ' ' << e.from << ' ' << e.to << ' ' << e.updates << ' ' << offset << ' ' << checksum << ' '
       << e.pieces.size();
  for (const Piece& piece : e.pieces) line << ' ' << piece.begin << ' ' << piece.end;
  if (e.across.end > 0 && e.across.end - e.across.begin < across_all(e).end)
    line << " across " << e.across.begin << ' ' << e.across.end;
  line << '\n';
  return line.str();
}

// A matrix of so many elements, their bytes and those of their moments can be counted.
constexpr std::int64_t most_elements = std::int64_t{1} << 56;

bool is_shape(std::int64_t rows, std::int64_t columns) {
  return rows > 0 && columns > 0 && rows <= most_elements / columns;
}

// Pieces one behind the other inside the parameter, and [from, to) inside what they cut out of it.
bool is_possible(const CheckpointEntry& e) {
  if (!is_shape(e.rows, e.columns) || e.shard_dim < -1 || e.shard_dim > 1 || e.pieces.empty()) return false;
  std::int64_t end = 0, length = 0;
  for (const Piece& piece : e.pieces) {
    if (piece.begin < end || piece.end < piece.begin) return false;
    end = piece.end;
    length += piece.end - piece.begin;
  }
  const std::int64_t along = e.shard_dim == 1 ? e.columns : e.rows;
  return end <= along && e.across.begin >= 0 && e.across.begin <= e.across.end && e.across.end <= across_all(e).end &&
         e.from >= 0 && e.from <= e.to && e.to <= length * (e.across.end - e.across.begin);
}

StoredEntry entry_from(const std::string& line, const std::string& path) {
  std::istringstream in(line);
  StoredEntry e;
  std::string word, dtype;
  std::size_t pieces = 0;
  in >> word >> e.parameter >> dtype >> e.rows >> e.columns >> e.shard_dim >> e.from >> e.to >> e.updates >> e.offset >>
      e.checksum >> pieces;
  for (Piece piece; e.pieces.size() < pieces && in >> piece.begin >> piece.end;) e.pieces.push_back(piece);
  const auto known = dtype_named(dtype);
  bool whole = static_cast<bool>(in) && word == "entry" && known;
  e.across = across_all(e);
  if (whole && in >> word) whole = word == "across" && in >> e.across.begin >> e.across.end;
  if (!whole) throw std::runtime_error(path + " holds a line that is no entry: " + line);
  e.dtype = *known;
  if (!is_possible(e)) throw std::runtime_error(path + " holds an entry that no parameter has: " + line);
  return e;
}

std::string line_of(const CheckpointMatrix& m, std::uint64_t offset, std::uint64_t checksum) {
  std::ostringstream line;
  line << "matrix " << m.name << ' ' << name_of(m.dtype) << ' ' << m.rows << ' ' << m.columns << ' ' << offset << ' '
       << checksum << '\n';
  return line.str();
}

StoredMatrix matrix_from(const std::string& line, const std::string& path) {
  std::istringstream in(line);
  StoredMatrix m;
  std::string word, dtype;
  in >> word >> m.name >> dtype >> m.rows >> m.columns >> m.offset >> m.checksum;
  const auto known = dtype_named(dtype);
  if (!in || !known || !is_shape(m.rows, m.columns))
    throw std::runtime_error(path + " holds a line that is no matrix: " + line);
  m.dtype = *known;
  return m;
}

constexpr const char* incomplete = "is not there completely; resume from another checkpoint";

[[noreturn]] void refuse(const CheckpointReader& checkpoint, const Parameter& parameter, const std::string& why) {
  throw std::runtime_error(checkpoint.folder() + ": " + parameter.name + " " + why);
}

void check_shape(const CheckpointReader& checkpoint, const Parameter& parameter, const StoredEntry& entry) {
  if (entry.rows == parameter.shape[0] && entry.columns == parameter.shape[1]) return;
  refuse(checkpoint, parameter,
         "is " + std::to_string(entry.rows) + " x " + std::to_string(entry.columns) + " there, but " +
             std::to_string(parameter.shape[0]) + " x " + std::to_string(parameter.shape[1]) +
             " in this model; resume with the model that was trained");
}

std::int64_t width_of(const Piece& piece) { return piece.end - piece.begin; }

// Number of rows or columns in all pieces.
std::int64_t length_of(const std::vector<Piece>& pieces) {
  std::int64_t length = 0;
  for (const Piece& piece : pieces) length += width_of(piece);
  return length;
}

bool same_piece(const Piece& x, const Piece& y) { return x.begin == y.begin && x.end == y.end; }

bool same_shard(const StoredEntry& a, const StoredEntry& b) {
  return std::equal(a.pieces.begin(), a.pieces.end(), b.pieces.begin(), b.pieces.end(), same_piece) &&
         same_piece(a.across, b.across);
}

// One tensor-parallel shard, flat: its slices in order, each element once.
std::array<std::string, 3> read_shard(const CheckpointReader& checkpoint, const Parameter& parameter,
                                      std::vector<StoredEntry> slices) {
  std::sort(slices.begin(), slices.end(), [](const auto& a, const auto& b) { return a.from < b.from; });
  const StoredEntry& first = slices.front();
  const std::int64_t elements = length_of(first.pieces) * width_of(first.across);
  std::array<std::string, 3> flat;
  std::int64_t next = 0;
  for (const StoredEntry& slice : slices) {
    if (slice.from != next || slice.to > elements || slice.dtype != first.dtype)
      refuse(checkpoint, parameter, incomplete);
    const std::string bytes = checkpoint.read(slice);
    const auto each = static_cast<std::size_t>(slice.bytes_each());
    for (std::size_t i = 0; i < flat.size(); ++i) flat[i].append(bytes, i * each, each);
    next = slice.to;
  }
  if (next != elements) refuse(checkpoint, parameter, incomplete);
  return flat;
}

// Copies a shard to its place in the whole parameter.
void put_shard(const Parameter& parameter, const StoredEntry& shard, const std::string& from, std::string& whole) {
  const auto bytes = static_cast<std::size_t>(bytes_of(shard.dtype));
  const bool by_columns = shard.shard_dim == 1;
  const std::int64_t length = length_of(shard.pieces), across = width_of(shard.across);
  const std::int64_t columns = by_columns ? length : across;  // of the shard
  std::int64_t at = 0;                                        // along the pieces
  for (const Piece& piece : shard.pieces) {
    const Piece rows = by_columns ? shard.across : piece, own = by_columns ? piece : shard.across;
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      const std::int64_t source = by_columns ? (row - rows.begin) * columns + at : (at + row - rows.begin) * columns;
      whole.replace(static_cast<std::size_t>(row * parameter.shape[1] + own.begin) * bytes,
                    static_cast<std::size_t>(width_of(own)) * bytes, from, static_cast<std::size_t>(source) * bytes,
                    static_cast<std::size_t>(width_of(own)) * bytes);
    }
    at += width_of(piece);
  }
}

}  // namespace

ShardWriter::ShardWriter(const std::string& folder, int rank)
    : index_path_(shard_path(folder, rank, "index")), data_path_(shard_path(folder, rank, "data")) {}

ShardWriter::~ShardWriter() {
  if (data_ >= 0) ::close(data_);
  if (finished_) return;
  ::unlink(data_path_.c_str());
  ::unlink(index_path_.c_str());
}

void ShardWriter::write(std::string_view bytes) {
  if (data_ < 0) data_ = open_new(data_path_);
  if (!write_all(data_, bytes)) fail(data_path_);
  offset_ += bytes.size();
}

void ShardWriter::add(const CheckpointEntry& entry, std::string_view masters, std::string_view first_moments,
                      std::string_view second_moments) {
  std::string bytes;
  bytes.reserve(3 * masters.size());
  for (const std::string_view part : {masters, first_moments, second_moments}) bytes += part;
  index_ += line_of(entry, offset_, checksum_of(bytes));
  write(bytes);
}

void ShardWriter::add(const CheckpointMatrix& matrix, std::string_view elements) {
  index_ += line_of(matrix, offset_, checksum_of(elements));
  write(elements);
}

std::optional<std::uint64_t> ShardWriter::finish() {
  if (index_.empty()) return std::nullopt;
  sync_and_close(std::exchange(data_, -1), data_path_);
  write_durably(index_path_, index_);
  finished_ = true;
  return checksum_of(index_);
}

CheckpointReader::CheckpointReader(const std::string& checkpoint)
    : folder_(checkpoint), manifest_(read_manifest(checkpoint)) {
  for (const auto& [rank, checksum] : manifest_.shards) {
    const std::string path = shard_path(checkpoint, rank, "index");
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    if (!file || checksum_of(text.str()) != checksum)
      throw std::runtime_error(path + (file ? " is damaged (its checksum does not fit)" : " cannot be read") +
                               "; resume from another checkpoint");
    for (std::string line; std::getline(text, line);) {
      if (line.starts_with("matrix ")) {
        StoredMatrix matrix = matrix_from(line, path);
        matrix.shard = rank;
        matrices_[matrix.name] = std::move(matrix);
        continue;
      }
      StoredEntry entry = entry_from(line, path);
      entry.shard = rank;
      entries_[entry.parameter].push_back(std::move(entry));
    }
  }
}

std::vector<StoredEntry> CheckpointReader::entries_of(const std::string& parameter) const {
  const auto found = entries_.find(parameter);
  return found == entries_.end() ? std::vector<StoredEntry>{} : found->second;
}

std::vector<std::string> CheckpointReader::parameters() const {
  std::vector<std::string> names;
  for (const auto& [name, entries] : entries_) names.push_back(name);
  return names;
}

const StoredMatrix* CheckpointReader::matrix(const std::string& name) const {
  const auto found = matrices_.find(name);
  return found == matrices_.end() ? nullptr : &found->second;
}

std::string CheckpointReader::read(int shard, std::uint64_t offset, std::int64_t count, std::uint64_t checksum,
                                   const std::string& name) const {
  const std::string path = shard_path(folder_, shard, "data");
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw std::runtime_error(path + " cannot be read: " + std::strerror(errno) + "; resume from another checkpoint");
  // An index from elsewhere may name more than there is memory.
  std::error_code unknown;
  const std::uint64_t size = std::filesystem::file_size(path, unknown);
  if (unknown || offset > size || static_cast<std::uint64_t>(count) > size - offset)
    throw std::runtime_error(path + " ends before its last entry (" + name + "); resume from another checkpoint");
  std::string bytes(static_cast<std::size_t>(count), '\0');
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file || checksum_of(bytes) != checksum)
    throw std::runtime_error(path + (file ? " is damaged (the checksum of " : " cannot be read (") + name +
                             (file ? " does not fit)" : ")") + "; resume from another checkpoint");
  return bytes;
}

std::string CheckpointReader::read(const StoredEntry& entry) const {
  return read(entry.shard, entry.offset, 3 * entry.bytes_each(), entry.checksum, entry.parameter);
}

std::string CheckpointReader::read(const StoredMatrix& matrix) const {
  return read(matrix.shard, matrix.offset, matrix.bytes(), matrix.checksum, matrix.name);
}

std::string why_not_whole(const std::string& checkpoint) {
  try {
    const CheckpointReader reader(checkpoint);
    for (const auto& [name, entries] : reader.entries())
      for (const StoredEntry& entry : entries) reader.read(entry);
    for (const auto& [name, matrix] : reader.matrices()) reader.read(matrix);
    return "";
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

NewestWhole newest_whole_checkpoint(const std::string& run_folder) {
  NewestWhole found;
  const std::vector<std::int64_t> steps = complete_checkpoints(run_folder);
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const std::string checkpoint = checkpoint_path(run_folder, *step), why = why_not_whole(checkpoint);
    if (why.empty()) {
      found.checkpoint = checkpoint;
      return found;
    }
    found.damaged.push_back(why);
  }
  if (found.damaged.empty()) return found;
  std::string text = "no checkpoint in " + checkpoints_path(run_folder) + " is whole:";
  for (const std::string& why : found.damaged) text += "\n" + why;
  throw std::runtime_error(text + "\nremove them, or give --out another folder, to start from the beginning");
}

// A parameter from all shards.

WholeParameter whole_parameter(const CheckpointReader& checkpoint, const Parameter& parameter) {
  std::vector<StoredEntry> entries = checkpoint.entries_of(parameter.name);
  if (entries.empty() && !parameter.same_as.empty())
    entries = checkpoint.entries_of(parameter.same_as);  // one rank held both
  if (entries.empty())
    refuse(checkpoint, parameter, "is not there: the checkpoint is of another model; resume with that one");
  for (const StoredEntry& entry : entries) check_shape(checkpoint, parameter, entry);
  WholeParameter whole{entries.front().dtype, 0, {}};
  const std::int64_t bytes = elements_of(parameter) * bytes_of(whole.dtype);
  for (std::string& part : whole.parts) part.resize(static_cast<std::size_t>(bytes));
  std::int64_t covered = 0;
  while (!entries.empty()) {
    const auto others = std::stable_partition(
        entries.begin(), entries.end(), [first = entries.front()](const auto& e) { return same_shard(e, first); });
    const std::vector<StoredEntry> slices(entries.begin(), others);
    entries.erase(entries.begin(), others);
    const StoredEntry& first = slices.front();
    if (first.dtype != whole.dtype) refuse(checkpoint, parameter, incomplete);
    const std::array<std::string, 3> shard = read_shard(checkpoint, parameter, slices);
    whole.updates = first.updates;
    for (std::size_t i = 0; i < shard.size(); ++i) put_shard(parameter, first, shard[i], whole.parts[i]);
    covered += length_of(first.pieces) * width_of(first.across);
  }
  if (covered != elements_of(parameter)) refuse(checkpoint, parameter, incomplete);
  return whole;
}

void write_durably(const std::string& path, std::string_view text) {
  const int file = open_new(path);
  if (!write_all(file, text)) fail(path);
  sync_and_close(file, path);
}

void sync_folder(const std::string& folder) {
  const int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) fail(folder);
  ::fsync(file);  // some file systems refuse it for folders; the rename itself has been done
  ::close(file);
}

}  // namespace slipway::exec
