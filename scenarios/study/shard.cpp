#include "scenarios/study/shard.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "scenarios/language/usage_error.h"

namespace slipway::scenarios {
namespace {

constexpr double absent = std::numeric_limits<double>::quiet_NaN();

nlohmann::json json_of(const StudyIdentity& identity) {
  return {{"slipway", identity.version}, {"words", identity.words}, {"files", identity.files}};
}

nlohmann::json json_of(const StudyRow& row) {
  if (!row.error.empty()) return {{"error", row.error}};
  nlohmann::json values = nlohmann::json::array();
  for (const StudyMetric& metric : study_metrics()) {
    const double value = row.metrics.*metric.value;
    values.push_back(std::isnan(value) ? nlohmann::json() : nlohmann::json(value));
  }
  return {{"values", values}};
}

void read_row(const nlohmann::json& json, StudyRow& row) {
  if (json.contains("error")) {
    row.error = json.at("error");
    return;
  }
  std::size_t at = 0;
  for (const StudyMetric& metric : study_metrics()) {
    const nlohmann::json& value = json.at("values").at(at++);
    row.metrics.*metric.value = value.is_null() ? absent : value.get<double>();
  }
  row.basis = basis_of_point(row.point);
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

// The difference of two studies, in the user's words.
std::string difference(const nlohmann::json& theirs, const nlohmann::json& ours) {
  if (theirs.at("slipway") != ours.at("slipway"))
    return "is of slipway " + theirs.at("slipway").get<std::string>() + ", this is " +
           ours.at("slipway").get<std::string>() + "; run this shard again";
  if (theirs.at("words") != ours.at("words")) {
    const auto text = [](const nlohmann::json& identity) {
      return fmt::format("'{}'", fmt::join(identity.at("words").get<std::vector<std::string>>(), " "));
    };
    return "is of another study: " + text(theirs) + ", not " + text(ours) + "; give the same arguments";
  }
  return "was made from other contents of the scenario's files; run this shard again";
}

// How many shards the folder's files say that there are.
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

std::vector<std::size_t> points_in(const Shard& shard, std::size_t points) {
  std::vector<std::size_t> indices;
  for (auto at = static_cast<std::size_t>(shard.number - 1); at < points; at += static_cast<std::size_t>(shard.count))
    indices.push_back(at);
  return indices;
}

std::string shard_path(const std::string& folder, const Shard& shard) {
  return fmt::format("{}/shard-{}-of-{}.json", folder, shard.number, shard.count);
}

std::string shard_text(const StudyIdentity& identity, const Shard& shard, const std::vector<StudyRow>& rows) {
  nlohmann::json json = {
      {"identity", json_of(identity)}, {"shard", {shard.number, shard.count}}, {"rows", nlohmann::json::array()}};
  for (const StudyRow& row : rows) json["rows"].push_back(json_of(row));
  return json.dump(1) + "\n";
}

std::vector<StudyRow> merged_rows(const std::string& folder, const StudyIdentity& identity,
                                  const std::vector<StudyPoint>& points) {
  std::vector<StudyRow> rows(points.size());
  for (std::size_t i = 0; i < points.size(); ++i) rows[i].point = points[i];
  const nlohmann::json ours = json_of(identity);
  for (Shard shard{1, count_in(folder)}; shard.number <= shard.count; ++shard.number) {
    const std::string path = shard_path(folder, shard);
    const nlohmann::json json = shard_in(path);
    try {
      if (json.at("identity") != ours) refuse(path, difference(json.at("identity"), ours));
      const std::vector<std::size_t> indices = points_in(shard, points.size());
      if (json.at("rows").size() != indices.size()) refuse(path, "has not all of its points; run this shard again");
      for (std::size_t i = 0; i < indices.size(); ++i) read_row(json.at("rows").at(i), rows[indices[i]]);
    } catch (const nlohmann::json::exception&) {
      refuse(path, "is no whole file of a shard; run this shard again");
    }
  }
  return rows;
}

std::string slurm_script(const std::vector<std::string>& words, int shards, const std::string& folder) {
  std::string line = "slipway study";
  for (const std::string& word : words) line += " " + quoted(word);
  const std::string place = quoted(folder);
  return fmt::format(R"(#!/bin/bash
#SBATCH --job-name=slipway-study
#SBATCH --array=1-{0}
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=4
# sbatch THIS_FILE; the table, when all tasks have ended (sbatch --dependency=afterok:JOB):
#   {1} --merge {2}
set -eu
exec {1} --jobs "${{SLURM_CPUS_PER_TASK:-1}}" --shard "$SLURM_ARRAY_TASK_ID/{0}" --into {2}
)",
                     shards, line, place);
}

}  // namespace slipway::scenarios
