#include "scenarios/language/load_kernels.h"

#include <charconv>
#include <sstream>

#include "scenarios/language/profiles.h"

namespace slipway::scenarios {
namespace {

class KernelReader {
 public:
  explicit KernelReader(Defects& defects) : defects_(defects) {}

  MachineKernels read(const Value& section) {
    if (section.kind != Value::Kind::map)
      return refuse(section.origin, "kernels", in_words(section) + " is no map of kernels; allowed: kernels by name",
                    "write 'gemm bfloat16: {share: ...}' below it"),
             MachineKernels{};
    if (const Value* other = section.find("as"); other != nullptr) return as_of(section, *other);
    MachineKernels kernels;
    kernels.measured = true;
    for (const Entry& entry : section.entries) {
      if (entry.key == "source") continue;
      if (entry.key == "measured")
        kernels.measured = entry.value.text != "false";
      else
        read_kernel(entry, kernels);
    }
    if (section.find("source") == nullptr)
      refuse(section.origin, "kernels.source", "the constants have no source; allowed: a text",
             "say where the numbers come from");
    if (!kernels.gemm[static_cast<std::size_t>(Format::bfloat16)])
      refuse(section.origin, "kernels.gemm bfloat16", "this kernel is missing; allowed: its constants",
             "add it: other formats and small kernels follow from it");
    return kernels;
  }

 private:
  void refuse(const Origin& origin, const std::string& key, const std::string& problem, const std::string& remedy) {
    defects_.push_back({origin.file, origin.line, key, problem, remedy});
  }

  MachineKernels as_of(const Value& section, const Value& other) {
    for (const Entry& entry : section.entries)
      if (entry.key != "as" && entry.key != "source")
        refuse(entry.origin, "kernels." + entry.key, "unknown key beside 'as'; allowed: source", "remove it");
    try {
      MachineKernels kernels = built_in_machine(other.text).kernels;
      kernels.measured = false;
      if (!kernels.empty()) return kernels;
      refuse(other.origin, "kernels.as", "the machine " + other.text + " has no kernels", "choose another one");
    } catch (const std::invalid_argument& error) {
      refuse(other.origin, "kernels.as", error.what(), "choose one");
    }
    return {};
  }

  double number(const Value& value, const std::string& path) {
    double result = 0;
    const char* end = value.text.data() + value.text.size();
    const auto [stop, error] = std::from_chars(value.text.data(), end, result);
    if (value.kind != Value::Kind::scalar || error != std::errc() || stop != end || !(result >= 0))
      refuse(value.origin, path, in_words(value) + " is no number from 0; allowed: a number", "write a number");
    return result;
  }

  KernelValues values_of(const Entry& entry, std::span<const KernelConstant> constants, bool casts) {
    KernelValues values{};
    const std::string path = "kernels." + entry.key;
    for (std::size_t i = 0; i < constants.size(); ++i) {
      const std::string key = constants[i].name;
      const Value* value = entry.value.find(key);
      if (value != nullptr)
        values[i] = number(*value, path + "." + key);
      else if (casts || i + 1 < constants.size())
        refuse(entry.origin, path + "." + key, "this constant is missing; allowed: " + std::string(constants[i].unit),
               std::string("add it: ") + constants[i].meaning);
      if (values[i] > constants[i].most)
        refuse(entry.origin, path + "." + key, "no kernel reaches more than 0.95; allowed: 0 to 0.95",
               "check the measurement");
    }
    for (const Entry& each : entry.value.entries) {
      const bool known = std::any_of(constants.begin(), constants.end(),
                                     [&](const KernelConstant& constant) { return each.key == constant.name; });
      if (!known && each.key != "deviation" && each.key != "left_out" && each.key != "source")
        refuse(each.origin, path + "." + each.key, "is no constant of this kernel", "remove it");
    }
    return values;
  }

  void read_kernel(const Entry& entry, MachineKernels& kernels) {
    const auto key = kernel_key_named(entry.key);
    if (!key || entry.value.kind != Value::Kind::map)
      return refuse(entry.origin, "kernels." + entry.key,
                    "is no kernel with constants; allowed: " + all_names(kernel_names) + ", and a format or collective",
                    "write for example 'gemm bfloat16: {share: ..., ...}'");
    const bool casts = key->kind != KernelKind::gemm || entry.value.find("cast") != nullptr;
    set_values(kernels, *key, values_of(entry, constants_of(key->kind), casts));
  }

  Defects& defects_;
};

}  // namespace

std::optional<KernelKey> kernel_key_named(const std::string& name) {
  std::istringstream words(name);
  std::string kind, what, width, more;
  words >> kind >> what >> width >> more;
  const auto found = value_in(kernel_names, kind);
  if (!found || what.empty() || !more.empty()) return std::nullopt;
  KernelKey key{*found};
  if (key.kind == KernelKind::collective) {
    const auto collective = value_in(collective_names, what);
    if (!collective || !width.empty()) return std::nullopt;
    key.collective = *collective;
    return key;
  }
  const auto format = value_in(format_names, what);
  if (!format || (key.kind == KernelKind::attention) == width.empty()) return std::nullopt;
  key.format = *format;
  if (!width.empty()) {
    const auto [stop, error] = std::from_chars(width.data(), width.data() + width.size(), key.head_dim);
    if (error != std::errc() || stop != width.data() + width.size() || key.head_dim < 1) return std::nullopt;
  }
  return key;
}

MachineKernels kernels_from(const Value& section, Defects& defects) { return KernelReader(defects).read(section); }

}  // namespace slipway::scenarios
