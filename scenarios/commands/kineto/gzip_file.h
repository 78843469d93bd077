// A file that may be compressed by gzip, as a stream of its plain text.
// Guarded by tests/scenarios/kineto_test.cpp: a cut file is an error, never a shorter text.
#pragma once

#include <functional>
#include <memory>
#include <streambuf>
#include <string>
#include <vector>

namespace slipway::scenarios {

// Reads with zlib. A file without gzip's mark is read as it is.
class GzipBuffer : public std::streambuf {
 public:
  // `progress` gets the share of the file that was read, 0..1, after each block. Throws std::runtime_error where the file
  // cannot be opened.
  GzipBuffer(const std::string& path, std::function<void(double share)> progress);
  ~GzipBuffer() override;
  GzipBuffer(const GzipBuffer&) = delete;
  GzipBuffer& operator=(const GzipBuffer&) = delete;

  // The defect of the compressed data that was read; empty: none. A stream swallows exceptions of its buffer, so the
  // caller checks this after the last read.
  const std::string& defect() const { return defect_; }

 protected:
  int_type underflow() override;

 private:
  struct File;  // zlib's
  std::unique_ptr<File> file_;
  std::function<void(double)> progress_;
  double bytes_ = 0;  // of the file
  std::vector<char> block_;
  std::string defect_;
};

}  // namespace slipway::scenarios
