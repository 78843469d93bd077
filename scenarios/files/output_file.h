// A file that appears whole or not at all. It is written without a name in its target's folder; commit() gives it one
// and renames it. Without commit it leaves nothing behind, also where the process is killed. Where a file system has no
// files without names, the name cannot be guessed, and a killed process leaves the file.
//
//   a new or regular file     nameless beside it ──► renamed over it, with the rights of what was there
//   a symbolic link           the same for the file that it leads to; the link stays
//   a device, FIFO or socket  opened and written directly; a file must never replace it
//   a folder                  refused
//
// Guarded by tests/scenarios/files_test.cpp.
#pragma once

#include <cstdint>
#include <fstream>
#include <ostream>
#include <string>

#include "models/namespaces.h"

namespace slipway::scenarios {

class OutputFile {
 public:
  // Throws std::runtime_error with the path, the reason and a remedy when it cannot be created.
  explicit OutputFile(std::string path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  std::ostream& stream() { return stream_; }
  // Flushes and renames. Returns the bytes written; 0 for outputs without a size (a device, a FIFO). Throws
  // std::runtime_error (disk full, folder gone).
  std::uint64_t commit();

 private:
  void remove_temporary();

  std::string path_;       // as given
  std::string target_;     // behind symbolic links
  std::string temporary_;  // empty: without a name, or written directly
  int file_ = -1;          // −1: written directly, or committed
  std::ofstream stream_;
};

// Throws as the constructor of OutputFile would. For paths that are written only after long work. Does not open a
// device or FIFO (a reader of a FIFO would see its end).
void check_writable(const std::string& path);

// Throws std::runtime_error with the reason and a remedy where the folder cannot be made or written to.
void check_folder_writable(const std::string& path);

}  // namespace slipway::scenarios
