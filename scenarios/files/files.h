// Why a file that somebody named cannot be read, asked before it is: the reason belongs into the message, whichever
// command reads it and whatever it holds.
//
//   "" (it can)     "No such file or directory"     "it is a folder"     "it is a device without end"
//
// It is not opened, because a pipe, `compare <(zcat p.gz) m.json`, can be opened once. Guarded by
// tests/scenarios/files_test.cpp.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

#include "models/namespaces.h"

namespace slipway::scenarios {

std::string unreadable(const std::string& path);

// A file that appears whole or not at all: written under a temporary name beside its target and renamed
// by commit(). Destroyed without commit (an error on the way), it leaves nothing behind.
//
//   a new or regular file     temporary beside it ──► renamed over it
//   a symbolic link           the same for the file that it leads to; the link stays
//   a device, FIFO or socket  opened and written directly: it must never be replaced by a file
//   a folder                  refused
//
// Guarded by tests/scenarios/files_test.cpp.

class OutputFile {
 public:
  // Throws std::runtime_error naming the path, the reason and a remedy when it cannot be created.
  explicit OutputFile(std::string path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  std::ostream& stream() { return stream_; }
  // Flushes and renames. Throws std::runtime_error (disk full, folder gone). Returns the bytes written, 0
  // for what has no size (a device, a FIFO).
  std::uint64_t commit();

 private:
  std::string path_;       // as it was given
  std::string target_;     // behind symbolic links
  std::string temporary_;  // empty: written directly, or committed
  std::ofstream stream_;
};

// Could an OutputFile of this path be made now? Throws as its constructor does; for paths that are written
// only after long work. A device or FIFO is not opened (a reader of a FIFO would see its end).
void check_writable(const std::string& path);

// Could this folder be made and written to now? Throws std::runtime_error with the reason and a remedy.
void check_folder_writable(const std::string& path);

}  // namespace slipway::scenarios
