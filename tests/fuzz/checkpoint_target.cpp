// A checkpoint: a line "---" parts the manifest and the index of shard 0. Their checksums are computed, so that the
// readers behind them are reached; so are those of the entries, as far as these can be followed.
#include <sstream>

#include "exec/run/checkpoint_file.h"
#include "exec/run/checksum.h"
#include "models/model/dtype.h"
#include "tests/fuzz/scratch.h"
#include "tests/fuzz/target.h"

namespace slipway::test {
namespace {

const std::string& data() {
  static const std::string bytes = [] {
    std::string made;
    for (int i = 0; i < 4096; ++i) made += static_cast<char>(i % 251);
    return made;
  }();
  return bytes;
}

// The checksum of what the entry points to, where that is in the data.
std::string with_checksum(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  const bool is_entry = !words.empty() && words[0] == "entry" && words.size() > 11;
  const bool is_matrix = !words.empty() && words[0] == "matrix" && words.size() > 6;
  if (!is_entry && !is_matrix) return line;
  const auto number = [&](std::size_t at) { return std::strtod(words[at].c_str(), nullptr); };
  const auto dtype = models::dtype_named(words[2]);
  const double elements = is_entry ? 3 * (number(7) - number(6)) : number(3) * number(4);
  const double begin = number(is_entry ? 9 : 5), bytes = dtype ? elements * models::bytes_of(*dtype) : -1;
  if (!(bytes >= 0 && begin >= 0 && begin + bytes <= static_cast<double>(data().size()))) return line;
  words[is_entry ? 10 : 6] = std::to_string(exec::checksum_of(
      std::string_view(data()).substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(bytes))));
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string index_of(const std::string& text) {
  std::istringstream in(text);
  std::string index;
  for (std::string line; std::getline(in, line);) index += with_checksum(line) + "\n";
  return index;
}

models::Parameter parameter(const std::string& name, std::int64_t rows, std::int64_t columns) {
  models::Parameter made;
  made.name = name;
  made.shape = {rows, columns};
  return made;
}

void try_input(std::string_view input) {
  static const Scratch scratch;
  constexpr std::string_view parting = "---\n";
  const std::size_t at = input.find(parting);
  if (at == std::string_view::npos) return;
  const std::string index = index_of(std::string(input.substr(at + parting.size())));
  std::string manifest(input.substr(0, at));
  manifest += "shard 0 " + std::to_string(exec::checksum_of(index)) + "\n";
  manifest += "checksum " + std::to_string(exec::checksum_of(manifest)) + "\n";
  scratch.write("manifest", manifest);
  scratch.write("shard-0.index", index);
  scratch.write("shard-0.data", data());
  const exec::CheckpointReader reader(scratch.folder());
  exec::to_text(reader.manifest());
  exec::other_settings(reader.manifest(), {{"heads", "4"}});
  for (const std::string& name : reader.parameters()) {
    try {
      exec::whole_parameter(reader, parameter(name, 4, 8));
    } catch (const std::runtime_error& refused) {
      if (typeid(refused) != typeid(std::runtime_error)) throw;
    }
    exec::whole_parameter(reader, parameter(name, 6, 1));
  }
  if (const exec::StoredMatrix* matrix = reader.matrix("m"); matrix != nullptr) reader.read(*matrix);
}

std::vector<std::string> seeds() {
  exec::Manifest manifest;
  manifest.step = 4, manifest.samples = 32, manifest.batch = 8, manifest.seed = 1, manifest.sequence = 16;
  manifest.data = {1000, 77, "/data/my text"};
  manifest.settings = {{"heads", "4"}, {"heads from layer 4", "8"}};
  std::string text = exec::to_text(manifest);
  text.erase(text.rfind("checksum "));
  return {
      text + "---\nentry w float32 4 8 -1 0 32 4 0 0 1 0 4\nmatrix m float64 2 2 384 0\n",
      text + "---\nentry w float32 4 8 0 0 16 4 0 0 1 0 2\nentry w float32 4 8 0 0 16 4 192 0 1 2 4\n",
      text + "---\nentry w float32 4 8 1 0 16 4 0 0 2 0 2 4 6\nentry w float32 4 8 1 0 16 4 192 0 2 2 4 6 8\n",
      text + "---\nentry v float64 6 1 -1 0 3 4 0 0 1 0 6\nentry v float64 6 1 -1 3 6 4 72 0 1 0 6\n",
      text +
          "---\nentry w float32 4 8 1 0 8 4 0 0 1 0 4 across 0 2\nentry w float32 4 8 1 0 8 4 96 0 1 4 8 across 0 2\n"
          "entry w float32 4 8 1 0 16 4 192 0 1 0 8 across 2 4\n"};
}

const RegisterTarget target({"checkpoint", try_input, seeds});

}  // namespace
}  // namespace slipway::test
