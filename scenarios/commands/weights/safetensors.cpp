#include "scenarios/commands/weights/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <utility>

#include "scenarios/files/files.h"

namespace slipway::scenarios {
namespace {

using nlohmann::json;

constexpr std::uint64_t length_bytes = 8;
constexpr std::uint64_t largest_header = 100'000'000;  // bytes; the format's own limit
constexpr std::array names{std::pair{"F64", Dtype::float64}, std::pair{"F32", Dtype::float32},
                           std::pair{"BF16", Dtype::bfloat16}, std::pair{"F16", Dtype::float16}};
// Bytes of an element; of fewer than eight bits (F4) there are none, and such a tensor's size is not checked.
const std::map<std::string, std::uint64_t> element_bytes{
    {"BOOL", 1}, {"U8", 1},   {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"F8_E8M0", 1}, {"U16", 2}, {"I16", 2},
    {"F16", 2},  {"BF16", 2}, {"U32", 4}, {"I32", 4},     {"F32", 4},     {"U64", 8},     {"I64", 8}, {"F64", 8}};

[[noreturn]] void refuse(const std::string& path, const std::string& defect) {
  throw std::runtime_error(path + ": " + defect + "; fetch the file again, or save it again with safetensors");
}

// The header's JSON as text.
std::string header_text(const std::string& path, std::uint64_t file_bytes) {
  std::ifstream file(path, std::ios::binary);
  std::array<unsigned char, length_bytes> digits{};
  if (file_bytes < length_bytes || !file.read(reinterpret_cast<char*>(digits.data()), length_bytes))
    refuse(path, fmt::format("it has {} bytes and a safetensors file begins with 8 for the length of its header",
                             file_bytes));
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) length |= std::uint64_t{digits[i]} << (8 * i);
  if (length > largest_header || length > file_bytes - length_bytes)
    refuse(path, fmt::format("its first 8 bytes give a header of {} bytes, and the file has {}: it is cut short, or "
                             "no safetensors file",
                             length, file_bytes));
  std::string text(length, '\0');
  if (!file.read(text.data(), static_cast<std::streamsize>(length))) refuse(path, "its header cannot be read");
  return text;
}

// Throws for text that is no JSON object, and for a name that comes twice.
json parsed(const std::string& path, const std::string& text) {
  std::set<std::string> seen;
  const auto note = [&](int depth, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::key && depth == 1 && !seen.insert(value.get<std::string>()).second)
      refuse(path, "its header names " + value.get<std::string>() + " twice");
    return true;
  };
  json all;
  try {
    all = json::parse(text, note);
  } catch (const json::exception& error) {
    refuse(path, std::string("its header is no JSON (") + error.what() + ")");
  }
  if (!all.is_object()) refuse(path, "its header is no JSON object");
  return all;
}

bool is_count(const json& value) { return value.is_number_unsigned() && value.get<std::uint64_t>() < (1ull << 62); }

// Elements of the shape; empty where their number is too large to be one.
std::optional<std::uint64_t> elements_of(const std::vector<std::int64_t>& shape) {
  std::uint64_t elements = 1;
  for (const std::int64_t size : shape) {
    if (size == 0) return 0;
    if (elements > (1ull << 58) / static_cast<std::uint64_t>(size)) return std::nullopt;
    elements *= static_cast<std::uint64_t>(size);
  }
  return elements;
}

StoredShape tensor_from(const std::string& path, const std::string& name, const json& entry) {
  const auto at = [&](const char* key) { return entry.is_object() && entry.contains(key) ? entry[key] : json(); };
  const json dtype = at("dtype"), shape = at("shape"), offsets = at("data_offsets");
  const auto counts = [](const json& list) {
    return list.is_array() && std::all_of(list.begin(), list.end(), is_count);
  };
  if (!dtype.is_string() || !counts(shape) || !counts(offsets) || offsets.size() != 2)
    refuse(path, "its header gives " + name + " no dtype, shape and data_offsets");
  StoredShape tensor{dtype.get<std::string>(), shape.get<std::vector<std::int64_t>>(), offsets[0], offsets[1]};
  const auto bytes = element_bytes.find(tensor.dtype);
  const std::optional<std::uint64_t> elements = elements_of(tensor.shape);
  if (tensor.begin > tensor.end ||
      (bytes != element_bytes.end() && (!elements || *elements * bytes->second != tensor.end - tensor.begin)))
    refuse(path, fmt::format("{} is {} [{}] there, which does not fill its bytes {} to {}", name, tensor.dtype,
                             fmt::join(tensor.shape, ", "), tensor.begin, tensor.end));
  return tensor;
}

// The tensors fill the rest of the file, one after another.
void check_cover(const std::string& path, const SafetensorsHeader& header) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  for (const auto& [name, tensor] : header.tensors) ranges.emplace_back(tensor.begin, tensor.end);
  std::sort(ranges.begin(), ranges.end());
  std::uint64_t next = header.bytes.size();
  for (const auto& [begin, end] : ranges) {
    if (begin != next)
      refuse(path, fmt::format("its tensors overlap or leave a hole at byte {}", std::min(begin, next)));
    next = end;
  }
  if (next != header.file_bytes)
    refuse(path, fmt::format("its tensors end at byte {} and the file at {}: it is {}", next, header.file_bytes,
                             next > header.file_bytes ? "cut short" : "longer than its header says"));
}

std::string little_endian(std::uint64_t number) {
  std::string bytes;
  for (std::uint64_t i = 0; i < length_bytes; ++i) bytes += static_cast<char>(number >> (8 * i) & 0xff);
  return bytes;
}

}  // namespace

SafetensorsHeader read_safetensors_header(const std::string& path) {
  if (const std::string why = unreadable(path); !why.empty()) refuse(path, "it cannot be read: " + why);
  SafetensorsHeader header;
  header.file_bytes = std::filesystem::file_size(path);
  const std::string text = header_text(path, header.file_bytes);
  header.bytes = little_endian(text.size()) + text;
  const json entries = parsed(path, text);
  for (const auto& [name, entry] : entries.items()) {
    if (name == "__metadata__") continue;
    StoredShape tensor = tensor_from(path, name, entry);
    tensor.begin += header.bytes.size();
    tensor.end += header.bytes.size();
    header.tensors[name] = std::move(tensor);
  }
  check_cover(path, header);
  return header;
}

std::optional<Dtype> dtype_of_safetensors(const std::string& name) {
  for (const auto& [text, dtype] : names)
    if (name == text) return dtype;
  return std::nullopt;
}

std::string safetensors_name(Dtype dtype) {
  for (const auto& [text, known] : names)
    if (known == dtype) return text;
  throw std::invalid_argument("safetensors has no dtype " + name_of(dtype));
}

std::string safetensors_header(const std::vector<NamedShape>& tensors, Dtype dtype) {
  nlohmann::ordered_json entries;
  entries["__metadata__"]["format"] = "pt";  // transformers asks for it
  std::uint64_t at = 0;
  for (const NamedShape& tensor : tensors) {
    const std::uint64_t end = at + *elements_of(tensor.shape) * static_cast<std::uint64_t>(bytes_of(dtype));
    entries[tensor.name] = {{"dtype", safetensors_name(dtype)}, {"shape", tensor.shape}, {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = entries.dump();
  while (text.size() % length_bytes != 0) text += ' ';  // elements lie at multiples of their size
  return little_endian(text.size()) + text;
}

}  // namespace slipway::scenarios
