// Why a file that somebody named cannot be read, asked before it is: the reason belongs into the message, whichever
// command reads it and whatever it holds.
//
//   "" (it can)     "No such file or directory"     "it is a folder"     "it is a device without end"
//
// It is not opened, because a pipe, `compare <(zcat p.gz) m.json`, can be opened once. Guarded by
// tests/input_file_test.cpp.
#pragma once

#include <string>

namespace slipway {

std::string unreadable(const std::string& path);

}  // namespace slipway
