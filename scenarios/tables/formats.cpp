#include "scenarios/tables/formats.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>

#include "scenarios/files/embedded_files.h"
#include "scenarios/files/files.h"
#include "scenarios/language/usage_error.h"

namespace slipway::scenarios {
namespace {

std::vector<std::string_view> missing_columns(const TableFormat& format, const std::vector<std::string>& header) {
  std::vector<std::string_view> missing;
  for (const std::string_view column : format.columns)
    if (std::find(header.begin(), header.end(), column) == header.end()) missing.push_back(column);
  return missing;
}

// Known files of other measurements, without training layouts, by columns that only they have.
struct OtherTable {
  std::vector<std::string_view> columns;
  const char* holds;
  const char* instead = nullptr;  // which command reads it or what it was made from; else why none does
};

const OtherTable* other_table(const std::vector<std::string>& header) {
  static const std::vector<OtherTable> others = {
      {{"bytes", "time_us"}, "times of single collectives"},
      {{"forward_ms", "backward_ms", "curvature_ms"}, "times of single Transformer blocks"},
      {{"eval_loss", "samples_or_tokens"}, "loss curves"},
      {{"schedule", "vpp", "tokens_per_s_per_device", "max_memory_gb"},
       "throughputs of pipeline schedules (AMD, Primus)",
       "no command reads it: without batch, sequence and number of micro-batches there is no layout to price; `slipway "
       "simulate SCENARIO --set schedule.name=NAME` prices a schedule of yours, and the machine mi300x has its memory "
       "from there"},
      {{"Collective name", "comm_latency_mean", "bus bw (GB/s)_mean"},
       "collectives of a trace as TraceLens sums them up",
       "no command reads sums: `slipway calibrate --kineto TRACE.json` reads the trace that they were made from, and "
       "`slipway kernels` single collectives (columns gpu, collective, members, bytes, seconds)"},
      {{"model_proxy", "dispatcher", "forward_ms", "backward_ms", "max_allocated_bytes"},
       "times of one layer with experts (Megatron-LM, moe_perf)",
       "no command reads it: a layer is no step, and `slipway kernels` fits single kernels"},
      {{"stream", "kernel", "total_us", "first_start_us"},
       "kernels of a trace summed up by stream",
       "no command reads sums: `slipway calibrate --kineto TRACE.json` reads the trace that they were made from"},
  };
  for (const OtherTable& other : others) {
    const bool all = std::all_of(other.columns.begin(), other.columns.end(), [&](std::string_view column) {
      return std::find(header.begin(), header.end(), column) != header.end();
    });
    if (all) return &other;
  }
  return nullptr;
}

std::string joined(const std::vector<std::string_view>& names) {
  std::string text;
  for (const std::string_view name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

[[noreturn]] void refuse_header(const CsvTable& table) {
  constexpr const char* remedy = "`slipway list tables` prints the columns of every table that can be scored";
  const std::string place = table.file + ":" + std::to_string(table.header_line) + ": ";
  if (const OtherTable* other = other_table(table.header))
    throw std::runtime_error(place + "this file holds " + other->holds + " and no step times of training layouts; " +
                             (other->instead != nullptr ? other->instead : remedy));
  const TableFormat* nearest = nullptr;
  double best = 0;
  std::vector<std::string_view> names;
  for (const TableFormat& format : table_formats()) {
    const double share = 1 - static_cast<double>(missing_columns(format, table.header).size()) /
                                 static_cast<double>(format.columns.size());
    if (share > best) best = share, nearest = &format;
    names.push_back(format.name);
  }
  constexpr double resembles = 0.3;
  if (nearest == nullptr || best < resembles)
    throw std::runtime_error(place + "the header is of no known table (" + joined(names) + "); " + remedy);
  const std::vector<std::string_view> missing = missing_columns(*nearest, table.header);
  throw std::runtime_error(place + "the header is of no known table; the nearest is " + std::string(nearest->name) +
                           ", which needs " + (missing.size() == 1 ? "column " : "columns ") + joined(missing) +
                           " besides; add what is missing (" + remedy + ")");
}

const TableFormat& recognised(const CsvTable& table) {
  const TableFormat* found = nullptr;
  for (const TableFormat& format : table_formats()) {
    if (!missing_columns(format, table.header).empty()) continue;
    if (found == nullptr || format.columns.size() > found->columns.size()) found = &format;
  }
  if (found == nullptr) refuse_header(table);
  return *found;
}

PublishedRow read_row(const TableFormat& format, const CsvTable& table, const CsvRow& source,
                      std::set<std::string, std::less<>>& read) {
  PublishedRow row;
  row.line = source.line;
  row.status = RowStatus::ok;  // until the reader sets it: an unreadable row is not skipped
  row.machine = row.table = row.group = row.choice = "unreadable";
  if (source.fields.size() != table.header.size()) {
    row.unpriceable = "it has " + std::to_string(source.fields.size()) + " fields where the header has " +
                      std::to_string(table.header.size());
    return row;
  }
  try {
    format.read(Cells(table.header, source, &read), row);
    check_row(row);
  } catch (const CellError& error) {
    row.unpriceable = error.what();
  } catch (const std::invalid_argument& error) {  // an impossible model
    row.unpriceable = error.what();
  }
  return row;
}

// Of the versions of a run the newest counts.
void mark_superseded(std::vector<PublishedRow>& rows) {
  std::map<std::string, std::string> newest;
  for (const PublishedRow& row : rows)
    if (!row.version_of.empty()) newest[row.version_of] = std::max(newest[row.version_of], row.version);
  for (PublishedRow& row : rows)
    if (!row.version_of.empty() && row.version != newest[row.version_of]) row.superseded = true;
}

}  // namespace

std::span<const TableFormat> table_formats() {
  static const std::vector<TableFormat> formats = {
      {"hagemann-2023",
       "Hagemann et al. 2023, arXiv 2311.05610",
       {"model", "seq_len", "gpus", "micro_batch", "tensor", "pipeline", "sequence_parallel", "recompute", "kernel",
        "status", "step_time_s"},
       read_hagemann},
      {"fujii-2024",
       "Fujii et al. 2024, arXiv 2411.06465",
       {"model", "gpu", "seq_len", "global_batch", "tensor", "context", "pipeline", "micro_batch", "gpus", "status",
        "tflops_per_gpu"},
       read_fujii},
      {"ultrascale-nanotron",
       "Hugging Face, The Ultra-Scale Playbook, 2025",
       {"gpus", "name", "seq_len", "mbs", "batch_accum", "dp", "tp", "pp", "zero_stage", "hidden_size", "interm_dim",
        "num_layers", "num_heads", "vocab_size", "status"},
       read_nanotron},
      {"vtrain",
       "vTrain, MICRO 2024",
       {"gpus", "tp", "dp", "pp", "global_batch", "micro_batch", "hidden", "heads", "layers", "seq", "iter_ms"},
       read_vtrain},
      {"llm-foundry",
       "MosaicML LLM Foundry, throughput tables",
       {"model", "seq", "gpus", "gpu", "micro_batch", "global_batch", "tokens_per_s", "precision", "sharding",
        "act_ckpt"},
       read_llm_foundry},
      {"megatron-scaling",
       "Narayanan et al. 2021, arXiv 2104.04473, table 1",
       {"gpu", "heads", "hidden", "layers", "tp", "pp", "gpus", "global_batch", "seq", "tflops_per_gpu"},
       read_megatron_scaling},
      {"megatron-tensor",
       "Megatron-LM, tensor and data parallel weak scaling on V100 and A100, 2021",
       {"gpu", "hidden", "heads", "layers", "tp", "dp", "gpus", "global_batch", "iter_ms"},
       read_megatron_tensor},
      {"megatron-bridge",
       "NVIDIA, Megatron-Bridge, performance summary of all releases",
       {"release", "in_head", "phase", "model_family", "gpu", "gpus", "precision_norm", "seq", "gbs", "mbs", "tp", "pp",
        "cp", "vp", "ep", "fsdp", "tokens_per_s_per_gpu"},
       read_megatron_bridge},
      {"megatron-bridge-cards",
       "NVIDIA, Megatron-Bridge, model verification cards",
       {"model",
        "item",
        "hardware",
        "gpus",
        "precision",
        "mode",
        "seq",
        "gbs",
        "mbs",
        "tp",
        "pp",
        "vpp",
        "cp",
        "ep",
        "etp",
        "routing",
        "cuda_graph",
        "dispatcher",
        "other_features",
        "step_ms"},
       read_verification_card},
      {"nvidia-dgxc",
       "NVIDIA, DGX Cloud benchmarking recipes, all releases",
       {"model", "size", "framework", "phase", "precision", "gpu", "gpus", "seq", "gbs", "mbs", "tp", "pp", "cp", "vp",
        "ep", "etp", "step_s", "check_tokens"},
       read_dgxc},
      {"aws-dispatchers",
       "AWS, awsome-distributed-ai, dispatchers of experts under Megatron-Bridge",
       {"model", "gpu", "network", "tp", "etp", "cp", "gpus", "gbs", "ep", "pp", "vpp", "mbs", "overlap", "recompute",
        "dispatcher", "step_s"},
       read_aws},
      {"mlperf",
       "MLCommons, MLPerf Training submissions of language models (not verified by MLCommons)",
       {"version", "benchmark", "org", "accelerator", "accelerators_per_node", "gpus", "seq", "gbs", "step_s_median",
        "tp", "pp", "cp", "vp", "mbs", "fp8", "fp4", "cuda_graph"},
       read_mlperf},
      {"ms-swift",
       "ModelScope, ms-swift, comments of its examples",
       {"comment", "gpus", "s_per_it", "command", "model", "tuner", "tp", "pp", "cp", "ep", "etp", "vpp", "mbs", "gbs",
        "max_length", "recompute", "offload", "fp8"},
       read_ms_swift},
      {"feature-effects",
       "NVIDIA, effects of single features of Megatron-Bridge and Megatron-Core",
       {"study",
        "model",
        "system",
        "gpus",
        "precision",
        "seq",
        "tp",
        "pp",
        "cp",
        "vp",
        "ep",
        "etp",
        "mbs",
        "gbs",
        "dispatcher",
        "recompute_modules",
        "cuda_graph",
        "overlap",
        "offload",
        "other",
        "outcome",
        "step_s",
        "tflops_per_gpu"},
       read_feature_effects},
      {"prime-rl",
       "PrimeIntellect, prime-rl, benchmarks of FSDP",
       {"type", "model", "gpus", "device", "lora_rank", "seq", "activation", "ep", "cp", "micro_batches", "success",
        "error", "micro_step_s_mean"},
       read_prime_rl},
      {"internevo",
       "InternLM, InternEvo, training performance of InternLM-7B on A100",
       {"table", "model", "gpu", "gpus", "tp", "pp", "zero1", "fsdp", "pack", "activation_ckpt", "seq", "micro_bsz",
        "micro_num", "global_tokens", "tokens_per_gpu_per_s"},
       read_internevo},
      {"nemo-automodel",
       "NVIDIA, NeMo AutoModel, performance summary",
       {"in_head", "phase", "system", "Model", "#GPUs", "GBS", "MBS", "LBS", "GA", "Seq Length", "TP", "PP", "CP", "EP",
        "VP", "FSDP", "Kernel Optimizations", "Time per Global Step (s)"},
       read_automodel},
      {"megatron-moe-recipes",
       "NVIDIA, Megatron-LM, recipes for mixtures of experts",
       {"source",
        "tflops_per_gpu",
        "model",
        "recipe",
        "gpu",
        "gpus",
        "features",
        "seq_length",
        "micro_batch_size",
        "global_batch_size",
        "tensor_model_parallel_size",
        "pipeline_model_parallel_size",
        "expert_model_parallel_size",
        "expert_tensor_parallel_size",
        "context_parallel_size",
        "pipeline_model_parallel_layout",
        "moe_token_dispatcher_type",
        "moe_flex_dispatcher_backend",
        "overlap_moe_expert_parallel_comm",
        "delay_wgrad_compute",
        "recompute_modules",
        "fine_grained_activation_offloading",
        "offload_modules",
        "chunked_optimizer_state_offload",
        "cuda_graph_impl",
        "cuda_graph_scope",
        "fp8_recipe",
        "fp8_param_gather",
        "exp_avg_dtype"},
       read_moe_recipes},
      {"torchtitan",
       "PyTorch, torchtitan, training in MXFP8 and NVFP4",
       {"model", "system", "gpus", "precision", "seq", "local_batch", "gbs", "fsdp", "ac", "compile", "tokens_per_s",
        "tokens_per_s_is"},
       read_torchtitan},
      {"megatron-golden",
       "NVIDIA, Megatron-LM, golden values of its functional tests",
       {"date",
        "family",
        "test_case",
        "gpu",
        "gpus",
        "mem_alloc_bytes",
        "mem_max_alloc_bytes",
        "tp",
        "pp",
        "cp",
        "ep",
        "etp",
        "layers_per_vp",
        "mbs",
        "gbs",
        "seq",
        "layers",
        "hidden",
        "ffn",
        "heads",
        "dist_opt",
        "transformer_impl",
        "env_vars",
        "other_args"},
       read_megatron_golden},
      {"slipway",
       "the format of Slipway's own tables",
       {"trainer",      "machine",           "model",   "family",         "layers",   "hidden", "ffn",
        "heads",        "kv_heads",          "vocab",   "tied",           "sequence", "gpus",   "gpus_per_node",
        "tensor",       "sequence_parallel", "context", "pipeline",       "chunks",   "zero",   "micro_batch",
        "global_batch", "recompute",         "kernels", "gradient_dtype", "status",   "step_s"},
       read_slipway},
  };
  return formats;
}

PublishedTable read_table(std::istream& in, const std::string& file) {
  const CsvTable table = read_csv(in, file);
  PublishedTable result{file, &recognised(table), "", {}, {}};
  result.source = table.comments.empty() ? std::string(result.format->source) : table.comments.front();
  std::set<std::string, std::less<>> read(result.format->columns.begin(), result.format->columns.end());
  for (const CsvRow& row : table.rows) result.rows.push_back(read_row(*result.format, table, row, read));
  mark_superseded(result.rows);
  for (const std::string& column : table.header)
    if (!read.contains(column)) result.unread.push_back(column);
  return result;
}

namespace {

// Names the first table of the folder, so that the next try works.
void refuse_folder(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return;
  std::string first;
  for (const auto& entry : std::filesystem::directory_iterator(path, ignored))  // not recursive
    if (const std::string found = entry.path().string(); found.ends_with(".csv") && (first.empty() || found < first))
      first = found;
  throw UsageError(path + " is a folder; give tables (CSV)" + (first.empty() ? "" : ", for example " + first));
}

}  // namespace

PublishedTable read_table_file(const std::string& path) {
  refuse_folder(path);
  if (const std::string reason = unreadable(path); !reason.empty())
    throw UsageError("cannot read the table " + path + ": " + reason + "; give a CSV file");
  std::ifstream in(path);
  try {
    return read_table(in, path);
  } catch (const std::runtime_error& error) {
    throw UsageError(error.what());
  }
}

void set_batch(PublishedRow& row, std::int64_t global_batch) {
  if (row.step.micro_batch < 1)
    throw CellError("the global batch of " + std::to_string(global_batch) + " is less than one sequence per replica");
  // Each degree is below 2^31. So the product of two fits in 64 bits, and exceeds any GPU count long before the third.
  constexpr std::int64_t most = std::int64_t{1} << 31;
  const std::int64_t two = std::int64_t{row.step.layout.tensor} * row.step.layout.context;
  const std::int64_t ranks = two < most ? two * row.step.layout.pipeline : most;
  if (row.gpus % ranks != 0) {
    // A layout with more ranks than GPUs is impossible, but some tables list such rows.
    if (row.status == RowStatus::ok)
      throw CellError("tensor x context x pipeline = " + std::to_string(ranks) + " does not divide " +
                      std::to_string(row.gpus) + " GPUs");
    row.status = RowStatus::infeasible;
    row.step.global_batch = global_batch / row.step.micro_batch * row.step.micro_batch * row.step.layout.data;
    return;
  }
  row.step.layout.data = static_cast<int>(row.gpus / ranks);
  const std::int64_t at_once = row.step.micro_batch <= global_batch ? row.step.layout.data * row.step.micro_batch : 0;
  if (at_once < 1 || global_batch < at_once)
    throw CellError("data x micro-batch = " + std::to_string(row.step.layout.data) + " x " +
                    std::to_string(row.step.micro_batch) + " does not divide the global batch of " +
                    std::to_string(global_batch));
  row.step.global_batch = (global_batch + at_once - 1) / at_once * at_once;
  if (global_batch % at_once != 0)
    assume(row, "data x micro-batch = " + std::to_string(row.step.layout.data) + " x " +
                    std::to_string(row.step.micro_batch) + " does not divide the global batch of " +
                    std::to_string(global_batch) + ": " + std::to_string(micro_batches_of(row.step)) +
                    " micro-batches");
}

void check_row(const PublishedRow& row) {
  constexpr std::int64_t most_layers = 10000;  // the limit of a scenario
  if (layer_count(row.step.model) > most_layers)
    throw CellError("the model has more than " + std::to_string(most_layers) + " layers");
  if (row.status == RowStatus::ok && row.not_modelled.empty() && !row.no_layout &&
      !(row.step_s > 0 && std::isfinite(row.step_s)))
    throw CellError("status is ok but its figures give no step time above 0");
}

const std::vector<PublishedRow>& published_rows() {
  static const std::vector<PublishedRow> all = [] {
    std::vector<PublishedRow> rows;
    for (const EmbeddedFile& file : embedded_tables()) {
      std::istringstream in{std::string(file.text)};
      for (PublishedRow& row : read_table(in, std::string(file.path)).rows) rows.push_back(std::move(row));
    }
    return rows;
  }();
  return all;
}

}  // namespace slipway::scenarios
