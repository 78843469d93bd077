#include "exec/files/checkpoint_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "exec/run/checksum.h"

namespace slipway::exec {
namespace {

[[noreturn]] void fail(const std::string& path) {
  throw std::runtime_error("cannot write " + path + ": " + std::strerror(errno) +
                           "; the checkpoint is not complete, earlier ones are untouched");
}

// In place of what an interrupted attempt left. O_EXCL follows no link that somebody put there.
int open_new(const std::string& path) {
  ::unlink(path.c_str());
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0) fail(path);
  return file;
}

void write_all(int file, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(path);
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
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
  if (!in || !known) throw std::runtime_error(path + " holds a line that is no matrix: " + line);
  m.dtype = *known;
  return m;
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
  write_all(data_, bytes, data_path_);
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
  std::string bytes(static_cast<std::size_t>(count), '\0');
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file || checksum_of(bytes) != checksum)
    throw std::runtime_error(path + (file ? " is damaged (the checksum of " : " ends before its last entry (") + name +
                             (file ? " does not fit)" : ")") + "; resume from another checkpoint");
  return bytes;
}

std::string CheckpointReader::read(const StoredEntry& entry) const {
  return read(entry.shard, entry.offset, 3 * entry.bytes_each(), entry.checksum, entry.parameter);
}

std::string CheckpointReader::read(const StoredMatrix& matrix) const {
  return read(matrix.shard, matrix.offset, matrix.bytes(), matrix.checksum, matrix.name);
}

void write_durably(const std::string& path, std::string_view text) {
  const int file = open_new(path);
  write_all(file, text, path);
  sync_and_close(file, path);
}

void sync_folder(const std::string& folder) {
  const int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) fail(folder);
  ::fsync(file);  // some file systems refuse it for folders; the rename itself has been done
  ::close(file);
}

}  // namespace slipway::exec
