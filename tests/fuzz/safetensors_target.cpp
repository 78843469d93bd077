// The header of a file of tensors.
#include "scenarios/commands/weights/safetensors.h"
#include "tests/fuzz/scratch.h"
#include "tests/fuzz/target.h"

namespace slipway::test {
namespace {

void try_input(std::string_view input) {
  static const Scratch scratch;
  const scenarios::SafetensorsHeader header =
      scenarios::read_safetensors_header(scratch.write("model.safetensors", input));
  for (const auto& [name, tensor] : header.tensors)
    promise(tensor.begin <= tensor.end && tensor.end <= header.file_bytes, "a tensor outside its file");
}

std::vector<std::string> seeds() {
  return {scenarios::safetensors_header({{"a", {2, 3}}, {"b", {4}}}, models::Dtype::float32) + std::string(40, 'x'),
          scenarios::safetensors_header({}, models::Dtype::bfloat16)};
}

const RegisterTarget target({"safetensors", try_input, seeds});

}  // namespace
}  // namespace slipway::test
