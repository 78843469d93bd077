// The page of --report (scenarios/report/page/), whose text the build copies into the program. Guarded by
// tests/repository/embedded_files_test.cpp.
#pragma once

#include "scenarios/files/embedded_files.h"

namespace slipway::scenarios {

std::span<const EmbeddedFile> embedded_page();  // the name is the file's, with extension

}  // namespace slipway::scenarios
