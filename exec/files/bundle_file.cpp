#include "exec/files/bundle_file.h"

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace slipway::exec {

BundleFile read_bundle_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot open the bundle " + path + "; make it with `slipway lower`");
  std::stringstream text;
  text << file.rdbuf();
  const std::string all = text.str();
  const std::size_t last = all.rfind("checksum ");
  BundleFile result{read_bundle(text, path), last == std::string::npos ? "" : all.substr(last)};
  while (!result.checksum.empty() && result.checksum.back() == '\n') result.checksum.pop_back();
  return result;
}

}  // namespace slipway::exec
