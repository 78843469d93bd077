#include "exec/files/token_source.h"

#include <array>
#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <vector>

#include "exec/run/data_files.h"

namespace slipway::exec {

namespace {

class ByteText final : public TokenSource {
 public:
  explicit ByteText(std::string path) : path_(std::move(path)), file_(path_, std::ios::binary) {
    std::error_code ignored;
    if (!file_ || !std::filesystem::is_regular_file(path_, ignored))
      throw std::runtime_error("run.data: cannot read " + path_ +
                               "; give the path of a text file or of Megatron token files (.bin and .idx)");
    file_.seekg(0, std::ios::end);
    size_ = static_cast<std::uint64_t>(file_.tellg());
  }
  std::uint64_t size() const override { return size_; }
  bool is_bytes() const override { return true; }

  void read(std::uint64_t first, std::span<std::int64_t> tokens) override {
    bytes_.resize(tokens.size());
    file_.clear();
    file_.seekg(static_cast<std::streamoff>(first));
    file_.read(bytes_.data(), static_cast<std::streamsize>(bytes_.size()));
    if (!file_) throw std::runtime_error("run.data: " + path_ + " became shorter while it was read");
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<unsigned char>(bytes_[i]);
  }

 private:
  std::string path_, bytes_;
  std::ifstream file_;
  std::uint64_t size_ = 0;
};

static_assert(std::endian::native == std::endian::little, "token files are little-endian");

constexpr char magic[9] = {'M', 'M', 'I', 'D', 'I', 'D', 'X', '\0', '\0'};
constexpr std::uint64_t header_bytes = sizeof magic + 8 + 1 + 8 + 8;

struct TokenType {
  std::size_t bytes = 0;  // 0: no token type
  bool is_signed = false;
};

TokenType type_of(int code) {
  constexpr std::array<TokenType, 9> types{
      {{}, {1, false}, {1, true}, {2, true}, {4, true}, {8, true}, {}, {}, {2, false}}};
  return code >= 0 && code < static_cast<int>(types.size()) ? types[code] : TokenType{};
}

template <class Number>
Number number_of(std::istream& in) {
  Number value{};
  in.read(reinterpret_cast<char*>(&value), sizeof value);
  return value;
}

std::int64_t token_at(const char* bytes, TokenType type) {
  std::int64_t value = 0;
  std::memcpy(&value, bytes, type.bytes);
  if (!type.is_signed || type.bytes == 8) return value;
  const int unused = 64 - 8 * static_cast<int>(type.bytes);
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(value) << unused) >> unused;
}

struct Index {
  TokenType type;
  std::uint64_t tokens = 0;
};

// Reads the lengths and checks that the places follow from them, in blocks, so that a large index stays on disk.
std::uint64_t stream_length(std::istream& lengths, std::istream& places, std::uint64_t sequences, TokenType type,
                            const std::string& path) {
  constexpr std::uint64_t block = 1 << 16;
  std::vector<std::int32_t> length(block);
  std::vector<std::int64_t> place(block);
  std::uint64_t bytes = 0;
  for (std::uint64_t first = 0; first < sequences; first += block) {
    const std::uint64_t count = std::min(block, sequences - first);
    lengths.read(reinterpret_cast<char*>(length.data()), static_cast<std::streamsize>(4 * count));
    places.read(reinterpret_cast<char*>(place.data()), static_cast<std::streamsize>(8 * count));
    if (!lengths || !places) throw std::runtime_error("run.data: cannot read " + path);
    for (std::uint64_t i = 0; i < count; ++i) {
      if (length[i] < 0 || place[i] < 0 || static_cast<std::uint64_t>(place[i]) != bytes)
        throw std::runtime_error("run.data: " + path + ": sequence " + std::to_string(first + i) +
                                 " does not begin where the one before it ends; write the files again with "
                                 "Megatron's preprocess_data.py or merge_datasets.py");
      bytes += static_cast<std::uint64_t>(length[i]) * type.bytes;
    }
  }
  return bytes / type.bytes;
}

Index read_index(const std::string& path) {
  std::ifstream in(path, std::ios::binary), places(path, std::ios::binary);
  char begin[sizeof magic] = {};
  in.read(begin, sizeof begin);
  if (!in || std::memcmp(begin, magic, sizeof magic) != 0)
    throw std::runtime_error("run.data: " + path +
                             " is no index of Megatron token files (it does not begin with "
                             "MMIDIDX); give the pair that preprocess_data.py wrote");
  const auto version = number_of<std::uint64_t>(in);
  const int code = number_of<std::uint8_t>(in);
  const auto sequences = number_of<std::uint64_t>(in), documents = number_of<std::uint64_t>(in);
  const TokenType type = type_of(code);
  if (!in) throw std::runtime_error("run.data: " + path + " ends inside its header; it is cut off: copy it again");
  if (version != 1)
    throw std::runtime_error("run.data: " + path + " has version " + std::to_string(version) + "; known: 1");
  if (type.bytes == 0)
    throw std::runtime_error("run.data: " + path + " holds numbers of type " + std::to_string(code) +
                             ", which are no tokens; known: 1, 2, 3, 4, 5, 8 (integers)");
  const std::uint64_t all = std::filesystem::file_size(path), rest = all - header_bytes;
  if (sequences > rest / 12 || documents > rest / 8 || rest < 12 * sequences + 8 * documents)
    throw std::runtime_error("run.data: " + path + " ends too early: " + std::to_string(sequences) + " sequences and " +
                             std::to_string(documents) + " documents do not fit into " + std::to_string(all) +
                             " bytes");
  places.seekg(static_cast<std::streamoff>(header_bytes + 4 * sequences));
  return {type, stream_length(in, places, sequences, type, path)};
}

class MegatronTokens final : public TokenSource {
 public:
  explicit MegatronTokens(const std::string& prefix)
      : path_(prefix + ".bin"), index_(read_index(prefix + ".idx")), file_(path_, std::ios::binary) {
    const std::uint64_t bytes = std::filesystem::file_size(path_);
    if (!file_ || bytes < index_.tokens * index_.type.bytes)
      throw std::runtime_error("run.data: " + path_ + " has " + std::to_string(bytes) + " bytes, but its index names " +
                               std::to_string(index_.tokens) + " tokens of " + std::to_string(index_.type.bytes) +
                               "; the two files are not of one pair, or one is cut off");
  }
  std::uint64_t size() const override { return index_.tokens; }
  bool is_bytes() const override { return false; }

  void read(std::uint64_t first, std::span<std::int64_t> tokens) override {
    const std::size_t width = index_.type.bytes;
    bytes_.resize(tokens.size() * width);
    file_.clear();
    file_.seekg(static_cast<std::streamoff>(first * width));
    file_.read(bytes_.data(), static_cast<std::streamsize>(bytes_.size()));
    if (!file_) throw std::runtime_error("run.data: " + path_ + " became shorter while it was read");
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = token_at(bytes_.data() + i * width, index_.type);
  }

 private:
  std::string path_, bytes_;
  Index index_;
  std::ifstream file_;
};

}  // namespace

std::unique_ptr<TokenSource> open_tokens(const std::string& path) {
  std::string prefix;
  if (names_token_files(path, &prefix)) return open_megatron_tokens(prefix);
  for (const char* ending : {".bin", ".idx"})
    if (path.ends_with(ending))
      throw std::runtime_error("run.data: token files come in pairs, but beside " + path + " there is no " +
                               (ending == std::string(".bin") ? ".idx" : ".bin") +
                               " of the same name; give both, or rename a text file");
  return std::make_unique<ByteText>(path);
}

std::unique_ptr<TokenSource> open_megatron_tokens(const std::string& prefix) {
  return std::make_unique<MegatronTokens>(prefix);
}

}  // namespace slipway::exec
