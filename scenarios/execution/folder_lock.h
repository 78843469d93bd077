// One run at a time in a folder. The lock is the kernel's and ends with the process, so a run that was
// killed leaves none. Guarded by tests/set_aside_test.cpp.
#pragma once

#include <string>

namespace slipway {

class FolderLock {
 public:
  // Throws std::runtime_error where another run holds it. Of a folder that cannot be opened, or whose file
  // system has no locks, nothing is held.
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int file_;  // -1: nothing is held
};

}  // namespace slipway
