// Runs this rank's part of a bundle: RankModel says what a task does, the lanes say when, transports carry
// the messages, and what happened is written to DIR (exec/records.h). Guarded by tests/execute_run_test.cpp
// and tests/command_execute_test.cpp.
#pragma once

#include <string>

#include "exec/arguments.h"
#include "exec/session.h"
#include "schedules/bundle.h"

namespace slipway {

// A bundle as read from a file, and the checksum that ends it.
struct BundleFile {
  Bundle bundle;
  std::string checksum;
};
// Throws std::runtime_error naming the file and the defect.
BundleFile read_bundle_file(const std::string& path);

// Throws what went wrong on this rank; other ranks' failures end the process before it returns.
void run_bundle(Seat& seat, const Bundle& bundle, const Arguments& arguments);

}  // namespace slipway
