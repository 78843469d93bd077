// A file that appears whole or not at all. It is written beside its place without a name, then gets one that cannot be
// guessed and follows no link, and is renamed. What was there before is replaced, a link included.
// Plain C++, no LibTorch. Guarded by tests/exec/whole_file_test.cpp.
#pragma once

#include <string>
#include <string_view>

#include "models/namespaces.h"

namespace slipway::exec {

// All bytes to an open file. False: errno says why.
bool write_all(int file, std::string_view bytes);

// A new file in the folder of `path` that has no name yet, so that nothing is left of it however the process ends.
// Negative where the file system has no such files (NFS): errno says why.
int nameless_beside(const std::string& path);
// A path by which another open() reaches the same file.
std::string name_of_open(int file);
// Gives a nameless file a name that nothing has. False: errno says why.
bool give_name(int file, const std::string& name);

// With the rights that a new file has. Throws std::runtime_error with the path, the reason and a remedy; then nothing is
// left behind, and what was there before is untouched.
void write_whole_file(const std::string& path, std::string_view text);

}  // namespace slipway::exec
