// The columns that the converters of publishers' tables read, inside the program: the lines `# reads: ...` of
// scenarios/studies/<study>/convert.py, without these two words, each with a line feed.
// Guarded by tests/scenarios/tables_test.cpp.
#pragma once

#include <span>

#include "scenarios/files/embedded_files.h"

namespace slipway::scenarios {

std::span<const EmbeddedFile> embedded_converters();  // the name is the study's, the path that of its convert.py

}  // namespace slipway::scenarios
