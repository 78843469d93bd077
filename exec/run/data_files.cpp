#include "exec/run/data_files.h"

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "exec/run/checksum.h"

namespace slipway::exec {

bool names_token_files(const std::string& path, std::string* prefix) {
  std::error_code ignored;
  const auto is_file = [&](const std::string& name) { return std::filesystem::is_regular_file(name, ignored); };
  std::string stem = path;
  const bool named = path.ends_with(".bin") || path.ends_with(".idx");
  if (named) stem.resize(stem.size() - 4);
  if (!named && is_file(path)) return false;  // a text file that happens to have namesakes
  if (!is_file(stem + ".bin") || !is_file(stem + ".idx")) return false;
  if (prefix != nullptr) *prefix = stem;
  return true;
}

std::string why_no_sample(const std::string& path, std::uint64_t size, bool is_bytes, std::int64_t sequence) {
  const auto needed = static_cast<std::uint64_t>(sequence + 1);
  if (size >= needed) return "";
  return path + " has " + std::to_string(size) + (is_bytes ? " bytes" : " tokens") + "; sequences of " +
         std::to_string(sequence) + " tokens need at least " + std::to_string(needed) +
         "; name a longer one, or lower model.sequence";
}

std::string why_no_bytes(const std::string& path, const Model& model) {
  const std::int64_t vocabulary = model.runs.front().block.vocab, needed = is_causal(model) ? 256 : 257;
  if (vocabulary >= needed) return "";
  return path + " is read byte by byte, which needs a vocabulary of " + std::to_string(needed) +
         (is_causal(model) ? "" : " (256 bytes and the mask)") + "; that of " + model.name + " is " +
         std::to_string(vocabulary) + "; raise model.vocab, or name token files";
}

std::string why_no_sample(const std::string& path, const Model& model) {
  std::error_code error;
  if (names_token_files(path)) return "";
  if (std::string why = why_no_bytes(path, model); !why.empty()) return why;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  return error ? "" : why_no_sample(path, size, true, model.sequence);
}

namespace {

// The checksums of consecutive parts of a file, of which all but the last have the same size. Adds its bytes to `bytes`.
std::string checksums_of_parts(const std::string& name, std::uint64_t& bytes) {
  constexpr std::size_t part = 4 << 20;
  std::ifstream file(name, std::ios::binary);
  std::string buffer(part, '\0'), checksums;
  for (bool ends = !file; !ends;) {
    file.read(buffer.data(), static_cast<std::streamsize>(part));
    ends = file.eof();
    if (file.bad() || (file.fail() && !ends)) break;
    const auto size = static_cast<std::size_t>(file.gcount());
    bytes += size;
    checksums += std::to_string(checksum_of(std::string_view(buffer).substr(0, size))) + ' ';
    if (ends) return checksums;
  }
  throw std::runtime_error("run.data: cannot read " + name);
}

}  // namespace

DataIdentity data_identity(const std::string& path) {
  std::string prefix;
  const std::vector<std::string> files =
      names_token_files(path, &prefix) ? std::vector<std::string>{prefix + ".bin", prefix + ".idx"} : std::vector{path};
  DataIdentity identity;
  identity.path = path;
  std::string parts;
  for (const std::string& name : files) parts += checksums_of_parts(name, identity.bytes);
  identity.checksum = checksum_of(parts);
  return identity;
}

}  // namespace slipway::exec
