// A folder for the readers that want a path. It is removed when the program ends, and TMPDIR says where it is.
// Guarded by tests/fuzz/fuzz_targets_test.cpp.
#pragma once

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include <stdlib.h>

namespace slipway::test {

class Scratch {
 public:
  Scratch() : folder_((std::filesystem::temp_directory_path() / "slipway-fuzz-XXXXXX").string()) {
    if (::mkdtemp(folder_.data()) == nullptr) throw std::runtime_error("cannot make " + folder_);
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::string& folder() const { return folder_; }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  // Returns the path.
  std::string write(const std::string& name, std::string_view bytes) const {
    std::ofstream file(path(name), std::ios::binary | std::ios::trunc);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return path(name);
  }

 private:
  std::string folder_;
};

}  // namespace slipway::test
