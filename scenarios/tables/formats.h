// Tables for `slipway validate`, recognised by their header.
//
//   hagemann.csv ─┐                       a format = name, source, columns it needs, reader of one row
//   fujii.csv    ─┼─ recognised(header) ─► rows, in file order; a broken one stays, without a price
//   own.csv      ─┘
//
// One file per format (format_*.cpp): the meaning of its columns, and the FLOP formula that turns its numbers into step
// seconds. Write a table of your own in the format `slipway` (format_slipway.cpp). Any other table can be converted to
// it: `slipway validate TABLE.csv --rows OUT.csv`.
// Guarded by tests/scenarios/tables_test.cpp.
#pragma once

#include <iosfwd>
#include <span>
#include <string_view>
#include <vector>

#include "scenarios/tables/csv.h"
#include "scenarios/tables/published_row.h"

namespace slipway::scenarios {

struct TableFormat {
  std::string_view name;                                // "hagemann-2023"
  std::string_view source;                              // citation
  std::vector<std::string_view> columns;                // required; others may exist
  void (*read)(const Cells& cells, PublishedRow& row);  // throws CellError
};

std::span<const TableFormat> table_formats();

struct PublishedTable {
  std::string file;
  const TableFormat* format = nullptr;
  std::string source;  // citation: the table's first comment, or the format's
  std::vector<PublishedRow> rows;
  std::vector<std::string> unread;  // columns that the format has no use for
};

// Throws std::runtime_error with the file. For a header that no format has, it adds the columns that the nearest format
// misses, and all formats' names. A row that cannot be read has `unpriceable` set.
PublishedTable read_table(std::istream& in, const std::string& file);
// The same of a file that the user named. Throws UsageError for all that, for a file that cannot be read, and for a
// folder.
PublishedTable read_table_file(const std::string& path);

// The row in the columns of format `slipway`.
std::vector<std::string> slipway_columns();
std::vector<std::string> slipway_fields(const PublishedRow& row);

// The readers, one per file.
void read_hagemann(const Cells& cells, PublishedRow& row);
void read_fujii(const Cells& cells, PublishedRow& row);
void read_nanotron(const Cells& cells, PublishedRow& row);
void read_vtrain(const Cells& cells, PublishedRow& row);
void read_llm_foundry(const Cells& cells, PublishedRow& row);
void read_megatron_scaling(const Cells& cells, PublishedRow& row);
void read_megatron_tensor(const Cells& cells, PublishedRow& row);
void read_slipway(const Cells& cells, PublishedRow& row);
void read_megatron_bridge(const Cells& cells, PublishedRow& row);
void read_verification_card(const Cells& cells, PublishedRow& row);
void read_dgxc(const Cells& cells, PublishedRow& row);
void read_aws(const Cells& cells, PublishedRow& row);
void read_mlperf(const Cells& cells, PublishedRow& row);
void read_ms_swift(const Cells& cells, PublishedRow& row);
void read_feature_effects(const Cells& cells, PublishedRow& row);
void read_prime_rl(const Cells& cells, PublishedRow& row);
void read_internevo(const Cells& cells, PublishedRow& row);
void read_automodel(const Cells& cells, PublishedRow& row);
void read_moe_recipes(const Cells& cells, PublishedRow& row);
void read_torchtitan(const Cells& cells, PublishedRow& row);
void read_megatron_golden(const Cells& cells, PublishedRow& row);

// For several readers: the Llama of models/model/library with another sequence length, also by its other names
// (names.cpp; CellError for an unknown name), and with a vocabulary of 128,000.
Model library_llama(const std::string& name, std::int64_t sequence);
Model library_llama_of_128k(const std::string& name, std::int64_t sequence);
// Sets data parallel degree and micro-batches from GPUs and batch. CellError when the ranks do not divide the GPUs or a
// replica gets less than a micro-batch. Where replicas do not divide the micro-batches, the last is assumed to be full.
void set_batch(PublishedRow& row, std::int64_t global_batch);
// Throws CellError for shapes that a parser accepts but no trainer could run: degrees that do not divide heads or GPUs.
void check_row(const PublishedRow& row);

// The rows of the tables of the study folders, which the program contains.
const std::vector<PublishedRow>& published_rows();

}  // namespace slipway::scenarios
