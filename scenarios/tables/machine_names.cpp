#include "scenarios/tables/machine_names.h"

#include <algorithm>
#include <cctype>
#include <regex>
#include <vector>

#include "scenarios/embedded_files.h"
#include "scenarios/tables/cells.h"

namespace slipway {
namespace {

std::vector<std::string> profiles_of(const std::string& generation) {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_machines())
    if (file.name == generation || file.name.starts_with(generation + "-")) names.emplace_back(file.name);
  return names;
}

}  // namespace

std::string machine_named(std::string_view column, const std::string& written,
                          const std::vector<std::string>& usual) {
  std::string name = written;
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const EmbeddedFile& file : embedded_machines())
    if (file.name == name) return name;
  static const std::regex generation("(^|[^a-z0-9])([a-z][0-9]{3})([^0-9]|$)"),
      gigabytes("([0-9]+)[ _-]?g(i?b)?([^a-z]|$)");
  std::smatch found, size;
  if (std::regex_search(name, found, generation)) {
    const std::vector<std::string> profiles = profiles_of(found[2]);
    const bool sized = std::regex_search(name, size, gigabytes);
    const std::string exact = found[2].str() + "-" + (sized ? size[1].str() : "") + "gb";
    if (sized && std::find(profiles.begin(), profiles.end(), exact) != profiles.end()) return exact;
    if (profiles.size() == 1 && (!sized || profiles[0] == found[2])) return profiles[0];
    for (const std::string& machine : usual)
      if (!sized && machine.starts_with(found[2].str())) return machine;
  }
  throw CellError(
      "column " + std::string(column) + ": '" + written +
      "' is no machine profile (`slipway list machines`); name the GPU with its memory, as in A100-80GB");
}

void set_machine(PublishedRow& row, const Cells& cells, const std::vector<std::string>& usual) {
  const std::string& written = cells.text("gpu");
  row.machine = machine_named("gpu", written, usual);
  bool told = false;
  try {
    told = machine_named("gpu", written) == row.machine;
  } catch (const CellError&) {
  }
  if (!told) assume(row, "gpu " + written + " is " + row.machine + ", as in its authors' other runs");
}

}  // namespace slipway
