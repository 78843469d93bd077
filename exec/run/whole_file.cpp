#include "exec/run/whole_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <random>
#include <stdexcept>

namespace slipway::exec {

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

int nameless_beside(const std::string& path) {
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  return ::open(folder.empty() ? "." : folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
}

std::string name_of_open(int file) { return "/proc/self/fd/" + std::to_string(file); }

bool give_name(int file, const std::string& name) {
  return ::linkat(AT_FDCWD, name_of_open(file).c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

void write_whole_file(const std::string& path, std::string_view text) {
  std::random_device random;  // the kernel's
  const std::string temporary = path + "." + std::to_string(random()) + std::to_string(random());
  int file = nameless_beside(path);
  const bool nameless = file >= 0;
  if (!nameless) file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  bool written = file >= 0 && write_all(file, text) && (!nameless || give_name(file, temporary));
  int reason = errno;
  if (file >= 0 && ::close(file) != 0 && written) written = false, reason = errno;
  if (written && std::rename(temporary.c_str(), path.c_str()) != 0) written = false, reason = errno;
  if (written) return;
  if (file >= 0) ::unlink(temporary.c_str());
  throw std::runtime_error("cannot write " + path + ": " + std::strerror(reason) +
                           "; make room, or name a file in a folder that you may write to");
}

}  // namespace slipway::exec
