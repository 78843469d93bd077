#include "exec/run/weight_files.h"

#include <fstream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include "exec/run/checksum.h"

namespace slipway::exec {
namespace {

// Without overflow: no count that is read is larger than the file's bytes.
bool is_inside(const WeightPart& part, const std::vector<WeightFile>& files) {
  if (part.file < 0 || static_cast<std::size_t>(part.file) >= files.size() || part.rows < 1 || part.columns < 1)
    return false;
  const std::uint64_t bytes = files[part.file].bytes, rows = static_cast<std::uint64_t>(part.rows),
                      row = static_cast<std::uint64_t>(part.columns);
  if (part.offset > bytes || rows > bytes || row > bytes) return false;
  return row <= (bytes - part.offset) / rows / static_cast<std::uint64_t>(bytes_of(part.dtype));
}

}  // namespace

std::string to_text(const WeightFiles& weights) {
  std::ostringstream out;
  out << "slipway-weights 1\nfolder " << weights.folder << '\n';
  for (const WeightFile& file : weights.files)
    out << "file " << file.bytes << ' ' << file.header_bytes << ' ' << file.header_checksum << ' ' << file.name << '\n';
  for (const WeightPart& part : weights.parts)
    out << "part " << part.parameter << ' ' << name_of(part.dtype) << ' ' << part.rows << ' ' << part.columns << ' '
        << part.file << ' ' << part.offset << '\n';
  const std::string text = out.str();
  return text + "checksum " + std::to_string(checksum_of(text)) + '\n';
}

WeightFiles read_weight_files(const std::string& path) {
  const auto refuse = [&](const char* defect) {
    throw std::runtime_error(path + " " + defect + "; `slipway lower --weights DIR` writes such a file");
  };
  std::ifstream file(path, std::ios::binary);
  std::stringstream all;
  all << file.rdbuf();
  const std::string text = all.str();
  const std::size_t last = text.rfind("checksum ");
  if (!file || !text.starts_with("slipway-weights 1\n")) refuse("is no list of weights");
  if (last == std::string::npos ||
      text.substr(last) != "checksum " + std::to_string(checksum_of(std::string_view(text).substr(0, last))) + '\n')
    refuse("is damaged (its checksum does not fit)");
  WeightFiles weights;
  std::istringstream lines(text.substr(0, last));
  std::string line, word, dtype;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    std::istringstream in(line);
    in >> word;
    if (word == "folder") {
      std::getline(in >> std::ws, weights.folder);
    } else if (word == "file") {
      WeightFile each;
      in >> each.bytes >> each.header_bytes >> each.header_checksum >> std::ws;
      std::getline(in, each.name);
      if (!in) refuse("holds a file that lacks its numbers or its name");
      if (each.header_bytes > each.bytes) refuse("names a header that is longer than its file");
      weights.files.push_back(each);
    } else if (word == "part") {
      WeightPart part;
      in >> part.parameter >> dtype >> part.rows >> part.columns >> part.file >> part.offset;
      const std::optional<Dtype> known = dtype_named(dtype);
      if (!known) refuse("has a part of an unknown number format");
      part.dtype = *known;
      if (!in || !is_inside(part, weights.files)) refuse("has a part that is outside its file");
      weights.parts.push_back(part);
    } else {
      refuse("holds a line that is neither a file nor a part");
    }
  }
  return weights;
}

}  // namespace slipway::exec
