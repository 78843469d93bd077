// The published runs inside the program: the tables that the built-in constants were fitted to, and the columns that the
// converters of publishers' tables read. The build copies them from scenarios/studies. Guarded by
// tests/repository/embedded_files_test.cpp.
#pragma once

#include "scenarios/files/embedded_files.h"

namespace slipway::scenarios {

std::span<const EmbeddedFile> embedded_tables();      // scenarios/studies/<study>/runs.csv; the name is the study's
std::span<const EmbeddedFile> embedded_converters();  // the name is the study's, the path that of its convert.py

}  // namespace slipway::scenarios
