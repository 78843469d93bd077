// Allows one run at a time in a folder. The kernel's lock ends with the process, so a killed run leaves none.
// Guarded by tests/scenarios/run_folder_test.cpp.
#pragma once

#include <string>

#include "models/namespaces.h"

namespace slipway::scenarios {

class FolderLock {
 public:
  // Throws std::runtime_error where another run holds it. Holds nothing where the folder cannot be opened or its file
  // system has no locks.
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int file_;  // -1: no lock
};

}  // namespace slipway::scenarios
