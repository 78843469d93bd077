// Token files of Megatron-LM: PREFIX.bin holds the ids, PREFIX.idx says where documents begin. Little-endian.
//
//   .idx   "MMIDIDX\0\0"  u64 version = 1  u8 type  u64 sequences n  u64 documents d
//          i32 length[n]  i64 place in .bin, bytes[n]  i64 first sequence of a document[d]  (u8 mode[n])
//   type   1 u8, 2 i8, 3 i16, 4 i32, 5 i64, 8 u16      (6 and 7 are floating point: no tokens)
//
// (megatron/core/datasets/indexed_dataset.py). Sequences must stand one after another in the .bin, as Megatron's
// own tools write them; then the .bin is the stream itself, and nothing of the index needs to stay in memory.
// Guarded by tests/token_source_test.cpp.
#pragma once

#include <memory>
#include <string>

#include "exec/token_source.h"

namespace slipway {

// Throws std::runtime_error naming the file and what is wrong with it.
std::unique_ptr<TokenSource> open_megatron_tokens(const std::string& prefix);

}  // namespace slipway
