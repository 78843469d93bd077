// PREFIX.idx of Megatron's token files, beside a PREFIX.bin of one TiB without a block on the disk.
#include <array>
#include <cstdint>
#include <cstring>

#include "exec/files/token_source.h"
#include "tests/fuzz/scratch.h"
#include "tests/fuzz/target.h"

namespace slipway::test {
namespace {

void try_input(std::string_view input) {
  static const Scratch scratch;
  static const bool made = [] {
    scratch.write("data.bin", "tokens");
    std::filesystem::resize_file(scratch.path("data.bin"), std::uintmax_t{1} << 40);
    return true;
  }();
  promise(made, "no token file");
  scratch.write("data.idx", input);
  const auto tokens = exec::open_megatron_tokens(scratch.path("data"));
  std::array<std::int64_t, 8> read{};
  const std::uint64_t count = std::min<std::uint64_t>(read.size(), tokens->size());
  tokens->read(0, std::span(read).first(count));
  tokens->read(tokens->size() - count, std::span(read).first(count));
}

template <typename Number>
void put(std::string& bytes, Number value) {
  std::array<char, sizeof value> raw{};
  std::memcpy(raw.data(), &value, sizeof value);
  bytes.append(raw.data(), raw.size());
}

std::string index(std::uint8_t type, std::int64_t width, const std::vector<std::int32_t>& lengths) {
  std::string bytes("MMIDIDX\0\0", 9);
  put(bytes, std::uint64_t{1});
  put(bytes, type);
  put(bytes, std::uint64_t{lengths.size()});
  put(bytes, std::uint64_t{lengths.size() + 1});
  for (const std::int32_t length : lengths) put(bytes, length);
  std::int64_t place = 0;
  for (const std::int32_t length : lengths) {
    put(bytes, place);
    place += length * width;
  }
  for (std::size_t i = 0; i <= lengths.size(); ++i) put(bytes, static_cast<std::int64_t>(i));
  return bytes;
}

std::vector<std::string> seeds() {
  return {index(8, 2, {2, 1}), index(4, 4, {3}), index(1, 1, {}), index(5, 8, {1, 0, 2147483647})};
}

const RegisterTarget target({"token_index", try_input, seeds});

}  // namespace
}  // namespace slipway::test
