#include "scenarios/files/files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <sys/sysmacros.h>

#include <cerrno>
#include <cstring>

namespace slipway::scenarios {

namespace {

// Linux's memory devices. Reading zero, full, random or urandom would fill memory; null (minor 3) is empty.
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

}  // namespace slipway::scenarios
