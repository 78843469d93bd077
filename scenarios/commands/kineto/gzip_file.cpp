#include "scenarios/commands/kineto/gzip_file.h"

#include <zlib.h>

#include <filesystem>
#include <stdexcept>

namespace slipway::scenarios {

struct GzipBuffer::File {
  gzFile handle = nullptr;
};

GzipBuffer::GzipBuffer(const std::string& path, std::function<void(double)> progress)
    : file_(new File), progress_(std::move(progress)), block_(1 << 20) {
  file_->handle = gzopen(path.c_str(), "rb");
  if (file_->handle == nullptr) throw std::runtime_error("cannot open " + path);
  gzbuffer(file_->handle, 1 << 18);
  std::error_code unknown;  // a pipe has no size; then there is no share to report
  const auto size = std::filesystem::file_size(path, unknown);
  if (!unknown) bytes_ = static_cast<double>(size);
}

GzipBuffer::~GzipBuffer() { gzclose(file_->handle); }

GzipBuffer::int_type GzipBuffer::underflow() {
  const int count = gzread(file_->handle, block_.data(), static_cast<unsigned>(block_.size()));
  int code = Z_OK;
  const char* message = gzerror(file_->handle, &code);
  if (code == Z_BUF_ERROR) defect_ = "ends in the middle of its compressed data";
  if (code != Z_OK && code != Z_BUF_ERROR && code != Z_STREAM_END)
    defect_ = std::string("is damaged (") + message + ")";
  if (count <= 0) return traits_type::eof();
  if (progress_ && bytes_ > 0) progress_(static_cast<double>(gzoffset(file_->handle)) / bytes_);
  setg(block_.data(), block_.data(), block_.data() + count);
  return traits_type::to_int_type(block_.front());
}

}  // namespace slipway::scenarios
