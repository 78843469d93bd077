// A file that appears whole or not at all: written under a temporary name beside its target and renamed
// by commit(). Destroyed without commit (an error on the way), it leaves nothing behind.
// Guarded by tests/output_file_test.cpp.
#pragma once

#include <fstream>
#include <string>

namespace slipway {

class OutputFile {
 public:
  // Throws std::runtime_error naming the path and the reason when it cannot be created.
  explicit OutputFile(std::string path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  std::ostream& stream() { return stream_; }
  // Flushes and renames. Throws std::runtime_error (disk full, folder gone). Returns the bytes written.
  std::uint64_t commit();

 private:
  std::string path_, temporary_;
  std::ofstream stream_;
};

// Could an OutputFile of this path be made now? Throws as its constructor does; for paths that are written
// only after long work.
void check_writable(const std::string& path);

}  // namespace slipway
