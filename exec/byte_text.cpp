#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <vector>

#include "exec/data_files.h"
#include "exec/megatron_tokens.h"
#include "exec/token_source.h"

namespace slipway {
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

}  // namespace slipway
