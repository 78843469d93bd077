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

void write_whole_file(const std::string& path, std::string_view text) {
  std::random_device random;  // the kernel's
  const std::string temporary = path + "." + std::to_string(random()) + std::to_string(random());
  const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  bool written = file >= 0 && write_all(file, text);
  int reason = errno;
  if (file >= 0 && ::close(file) != 0 && written) written = false, reason = errno;
  if (written && std::rename(temporary.c_str(), path.c_str()) != 0) written = false, reason = errno;
  if (written) return;
  if (file >= 0) ::unlink(temporary.c_str());
  throw std::runtime_error("cannot write " + path + ": " + std::strerror(reason) +
                           "; make room, or name a file in a folder that you may write to");
}

}  // namespace slipway::exec
