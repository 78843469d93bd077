// The reason why a named file cannot be read. Commands check it before reading and put it into their message.
//
//   "" (readable)     "No such file or directory"     "it is a folder"     "it is a device without end"
//
// The file is not opened, because a pipe, `compare <(zcat p.gz) m.json`, can be opened once.
// Guarded by tests/scenarios/files_test.cpp.
#pragma once

#include <string>

#include "models/namespaces.h"

namespace slipway::scenarios {

std::string unreadable(const std::string& path);

}  // namespace slipway::scenarios
