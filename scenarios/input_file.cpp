#include "scenarios/input_file.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace slipway {
namespace {

// Linux's memory devices: zero, full, random and urandom would be read until memory is full; null (minor 3) is empty.
bool is_endless(const struct stat& status) {
  return S_ISCHR(status.st_mode) && major(status.st_rdev) == 1 && minor(status.st_rdev) != 3;
}

}  // namespace

std::string unreadable(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::strerror(errno);
  if (S_ISDIR(status.st_mode)) return "it is a folder";
  if (is_endless(status)) return "it is a device without end";
  if (::access(path.c_str(), R_OK) != 0) return std::strerror(errno);
  return "";
}

}  // namespace slipway
