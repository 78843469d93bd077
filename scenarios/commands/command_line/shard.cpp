#include "scenarios/commands/command_line/shard.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "exec/run/checksum.h"
#include "scenarios/commands/command_line/command.h"
#include "scenarios/commands/command_line/outputs.h"
#include "scenarios/files/output_file.h"
#include "scenarios/files/usage_error.h"

namespace slipway::scenarios {
namespace {

constexpr double absent = std::numeric_limits<double>::quiet_NaN();

nlohmann::json json_of(const ShardIdentity& identity) {
  return {{"slipway", identity.version}, {"words", identity.words}, {"files", identity.files}};
}

nlohmann::json json_of(const ShardRow& row) {
  if (!row.error.empty()) return {{"part", row.part}, {"error", row.error}};
  nlohmann::json values = nlohmann::json::array();
  for (const double value : row.values) values.push_back(std::isnan(value) ? nlohmann::json() : nlohmann::json(value));
  return {{"part", row.part}, {"values", values}};
}

ShardRow row_in(const nlohmann::json& json) {
  ShardRow row;
  row.part = json.at("part");
  if (json.contains("error")) {
    row.error = json.at("error");
    return row;
  }
  for (const nlohmann::json& value : json.at("values"))
    row.values.push_back(value.is_null() ? absent : value.get<double>());
  return row;
}

[[noreturn]] void refuse(const std::string& path, const std::string& problem) {
  throw UsageError("--merge: " + path + " " + problem);
}

nlohmann::json shard_in(const std::string& path) {
  std::ifstream in(path);
  if (!in) refuse(path, "cannot be read; run this shard with --shard and --into first");
  nlohmann::json json = nlohmann::json::parse(in, nullptr, false);
  if (json.is_discarded() || !json.contains("identity") || !json.contains("rows"))
    refuse(path, "is no whole file of a shard; run this shard again");
  return json;
}

// The difference of two commands, in the user's words.
std::string difference(const nlohmann::json& theirs, const nlohmann::json& ours) {
  if (theirs.at("slipway") != ours.at("slipway"))
    return "is of slipway " + theirs.at("slipway").get<std::string>() + ", this is " +
           ours.at("slipway").get<std::string>() + "; run this shard again";
  if (theirs.at("words") != ours.at("words")) {
    const auto text = [](const nlohmann::json& identity) {
      return fmt::format("'{}'", fmt::join(identity.at("words").get<std::vector<std::string>>(), " "));
    };
    return "is of another command: " + text(theirs) + ", not " + text(ours) + "; give the same arguments";
  }
  return "was made from other contents of the scenario's files; run this shard again";
}

// The number of shards that the folder's files state.
int count_in(const std::string& folder) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    const std::size_t of = name.find("-of-");
    if (!name.starts_with("shard-") || !name.ends_with(".json") || of == std::string::npos) continue;
    int count = 0;
    std::from_chars(name.data() + of + 4, name.data() + name.size(), count);
    if (count > 0) return count;
  }
  throw UsageError("--merge " + folder + ": there is no shard-1-of-N.json; give the folder of --into");
}

// A word of a shell's command line.
std::string quoted(const std::string& word) {
  const bool plain = !word.empty() && word.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789_-+=.,:/%@") == std::string::npos;
  if (plain) return word;
  std::string text = "'";
  for (const char letter : word) text += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return text + "'";
}

// The arguments of this command line that its tasks repeat.
std::vector<std::string> words_without(const std::vector<std::string>& args, const std::set<std::string>& options) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::string name = args[i].substr(0, args[i].find('='));
    if (!options.contains(name))
      words.push_back(args[i]);
    else if (name == args[i])
      ++i;  // and its value
  }
  return words;
}

}  // namespace

Shard shard_from(const std::string& text) {
  constexpr int most = 100000;
  Shard shard;
  const char* const end = text.data() + text.size();
  const auto number = std::from_chars(text.data(), end, shard.number);
  const bool has_count = number.ec == std::errc() && number.ptr != end && *number.ptr == '/';
  const auto count = has_count ? std::from_chars(number.ptr + 1, end, shard.count) : number;
  if (!has_count || count.ec != std::errc() || count.ptr != end || shard.number < 1 || shard.count > most ||
      shard.number > shard.count)
    throw UsageError("--shard " + text + " is no I/N with I from 1 to N, N up to 100000; the first of four is 1/4");
  return shard;
}

std::string shard_path(const std::string& folder, const Shard& shard) {
  return fmt::format("{}/shard-{}-of-{}.json", folder, shard.number, shard.count);
}

ShardIdentity identity_of(std::vector<std::string> words, const std::set<std::string>& files) {
  ShardIdentity identity{std::string(slipway_version()), std::move(words), {}};
  for (const std::string& path : files) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    identity.files.push_back(fmt::format("{} {:016x}", path, exec::checksum_of(text.str())));
  }
  return identity;
}

std::string shard_text(const ShardIdentity& identity, const Shard& shard, const std::vector<ShardRow>& rows) {
  nlohmann::json json = {
      {"identity", json_of(identity)}, {"shard", {shard.number, shard.count}}, {"rows", nlohmann::json::array()}};
  for (const ShardRow& row : rows) json["rows"].push_back(json_of(row));
  return json.dump(1) + "\n";
}

std::vector<ShardRow> merged_rows(const std::string& folder, const ShardIdentity& identity, std::size_t values,
                                  std::optional<std::size_t> points) {
  std::vector<ShardRow> rows;
  const nlohmann::json ours = json_of(identity);
  for (Shard shard{1, count_in(folder)}; shard.number <= shard.count; ++shard.number) {
    const std::string path = shard_path(folder, shard);
    const nlohmann::json json = shard_in(path);
    try {
      if (json.at("identity") != ours) refuse(path, difference(json.at("identity"), ours));
      if (json.at("shard") != nlohmann::json({shard.number, shard.count}))
        refuse(path, "is another shard under this name; run this shard again");
      std::vector<std::size_t> parts;
      for (const nlohmann::json& row : json.at("rows")) {
        rows.push_back(row_in(row));
        parts.push_back(rows.back().part);
        if (rows.back().error.empty() && rows.back().values.size() != values)
          refuse(path, "has a row without all of its values; run this shard again");
      }
      if (points && parts != points_in(shard, *points)) refuse(path, "has not all of its points; run this shard again");
    } catch (const nlohmann::json::exception&) {
      refuse(path, "is no whole file of a shard; run this shard again");
    }
  }
  return rows;
}

void declare_shard_options(CommandOptions& options, const std::string& parts, const std::string& emits) {
  options
      .value("shard", "I/N",
             "simulate every N-th " + parts + " from the I-th on and write them to --into, without a table")
      .value("into", "DIR", "the folder of the shards' files, which all machines share")
      .value("merge", "DIR", "the table of all shards in DIR, the same bytes as without shards")
      .value("emit", emits.empty() ? "slurm" : "NAME",
             emits + "print a Slurm array script of --shards tasks that write to --into" +
                 (emits.empty() ? "" : " (slurm)"))
      .value("shards", "N", "for --emit slurm (default: 16)");
}

bool emits_slurm(const CommandOptions& options) { return options.text("emit") == "slurm"; }

void check_shard_options(const CommandOptions& options, const std::vector<std::string>& outputs) {
  const bool scripted = emits_slurm(options);
  const auto needs = [&](const char* option, bool has, const char* other, const char* reason) {
    if (options.has(option) && !has) throw UsageError(std::string("--") + option + " needs --" + other + ": " + reason);
  };
  const auto excludes = [&](const std::string& option, const std::string& other) {
    if (options.has(option) && options.has(other))
      throw UsageError("--" + option + " and --" + other + " exclude each other; leave one of the two out");
  };
  needs("shard", options.has("into"), "into", "the folder that gets the shard's file");
  if (scripted) needs("emit", options.has("into"), "into", "the folder of the shards' files");
  needs("shards", scripted, "emit slurm", "it is the number of its tasks");
  excludes("shard", "merge");
  excludes("shard", "emit");
  excludes("merge", "into");
  if (scripted) excludes("merge", "emit");
  if (options.has("into") && !options.has("shard") && !scripted)
    throw UsageError("--into is where --shard I/N writes; give --shard or --emit slurm as well");
  for (const std::string& output : outputs) {
    excludes("shard", output);
    if (scripted) excludes("emit", output);
  }
}

void make_shard_folder(const CommandOptions& options) {
  const std::string folder = *options.text("into");
  check_output_folder("--into", folder);
  std::filesystem::create_directories(folder);
}

std::string write_shard(const CommandOptions& options, const ShardIdentity& identity,
                        const std::vector<ShardRow>& rows) {
  const Shard shard = shard_from(*options.text("shard"));
  const std::string path = shard_path(*options.text("into"), shard);
  OutputFile file(path);
  file.stream() << shard_text(identity, shard, rows);
  file.commit();
  return path;
}

std::string slurm_script(const std::string& command, const std::vector<std::string>& args,
                         const CommandOptions& options, const std::string& task_words) {
  std::string line = "slipway " + command;
  for (const std::string& word : words_without(args, {"--emit", "--shards", "--into", "--jobs"}))
    line += " " + quoted(word);
  return fmt::format(R"(#!/bin/bash
#SBATCH --job-name=slipway-{3}
#SBATCH --array=1-{0}
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=4
# sbatch THIS_FILE; the table, when all tasks have ended (sbatch --dependency=afterok:JOB):
#   {1} --merge {2}
set -eu
exec {1}{4} --shard "$SLURM_ARRAY_TASK_ID/{0}" --into {2}
)",
                     options.integer("shards", 16, 1), line, quoted(*options.text("into")), command, task_words);
}

}  // namespace slipway::scenarios
