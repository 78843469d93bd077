#include "scenarios/commands/execute/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <utility>

namespace slipway::scenarios {

FolderLock::FolderLock(const std::string& folder) : file_(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (file_ < 0 || flock(file_, LOCK_EX | LOCK_NB) == 0) return;
  const bool is_taken = errno == EWOULDBLOCK;
  close(std::exchange(file_, -1));
  if (is_taken)
    throw std::runtime_error("another `slipway execute` is at work in " + folder +
                             "; wait for its end, or give --out another folder");
}

FolderLock::~FolderLock() {
  if (file_ >= 0) close(file_);
}

}  // namespace slipway::scenarios
