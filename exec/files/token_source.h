// The source of training tokens: one stream of token ids from any file format.
//
//   text           each byte is a token
//   PREFIX.bin     ids as written by Megatron-LM's preprocess_data.py;
//   PREFIX.idx     documents one after another, in the order of the index
//
// The samples of length s are the windows [j·s, j·s + s], each once per epoch. Their order depends only on the seed and
// the sample's number (SampleOrder). So any layout, and a resumed run, reads the same samples.
// Plain C++. Guarded by tests/exec/token_source_test.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "models/namespaces.h"

namespace slipway::exec {

class TokenSource {
 public:
  virtual ~TokenSource() = default;
  virtual std::uint64_t size() const = 0;  // tokens
  // Fills `tokens` from `first` on. Throws std::runtime_error when the file became shorter.
  virtual void read(std::uint64_t first, std::span<std::int64_t> tokens) = 0;
  virtual bool is_bytes() const = 0;  // ids are bytes: 256 of them
};

// Opens a text file, or token files named by PREFIX.bin, PREFIX.idx or PREFIX alone. Throws std::runtime_error with
// file and defect.
std::unique_ptr<TokenSource> open_tokens(const std::string& path);

// Token files of Megatron-LM: PREFIX.bin holds the ids, PREFIX.idx the beginnings of documents. Little-endian.
//
//   .idx   "MMIDIDX\0\0"  u64 version = 1  u8 type  u64 sequences n  u64 documents d
//          i32 length[n]  i64 place in .bin, bytes[n]  i64 first sequence of a document[d]  (u8 mode[n])
//   type   1 u8, 2 i8, 3 i16, 4 i32, 5 i64, 8 u16      (6 and 7 are floating point: no tokens)
//
// (megatron/core/datasets/indexed_dataset.py). Sequences must be consecutive in the .bin, as Megatron's own tools write
// them. Then the .bin is the stream itself, and nothing of the index stays in memory.
// Guarded by tests/exec/token_source_test.cpp.

// Throws std::runtime_error with the file and its defect.
std::unique_ptr<TokenSource> open_megatron_tokens(const std::string& prefix);

}  // namespace slipway::exec
