// The bundle file that starts a rank. Guarded by tests/exec/execute_failure_test.cpp.
#pragma once

#include <string>

#include "schedules/bundle/bundle.h"

namespace slipway::exec {

// A bundle as read from a file, and the checksum that ends it.
struct BundleFile {
  Bundle bundle;
  std::string checksum;
};
// Throws std::runtime_error with the file and the defect.
BundleFile read_bundle_file(const std::string& path);

}  // namespace slipway::exec
