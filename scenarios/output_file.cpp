#include "scenarios/output_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>

namespace slipway {

OutputFile::OutputFile(std::string path)
    : path_(std::move(path)), temporary_(path_ + ".writing-" + std::to_string(::getpid())) {
  errno = 0;
  stream_.open(temporary_, std::ios::binary | std::ios::trunc);
  if (!stream_) {
    throw std::runtime_error("cannot write " + path_ + ": " + std::strerror(errno) +
                             "; name a path in a folder that exists and is writable");
  }
}

OutputFile::~OutputFile() {
  if (temporary_.empty()) return;
  stream_.close();
  std::error_code
      ignored;  // an error is already under way; a left-over temporary file is not worth another
  std::filesystem::remove(temporary_, ignored);
}

void check_writable(const std::string& path) { OutputFile(std::string(path)); }

std::uint64_t OutputFile::commit() {
  errno = 0;
  stream_.close();
  if (!stream_) throw std::runtime_error("cannot write " + path_ + ": " + std::strerror(errno));
  const std::uint64_t bytes = std::filesystem::file_size(temporary_);
  std::filesystem::rename(temporary_, path_);
  temporary_.clear();
  return bytes;
}

}  // namespace slipway
