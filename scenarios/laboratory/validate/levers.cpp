#include "scenarios/laboratory/validate/levers.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "models/trace/statistics.h"
#include "scenarios/predict/readable.h"

namespace slipway::scenarios {
namespace {

// Keys that are pulled to make a step faster or smaller, and leave what is trained as it is.
bool is_lever(std::string_view key) {
  static const std::set<std::string_view> levers = {"layout.chunks",
                                                    "layout.dispatcher",
                                                    "layout.split",
                                                    "layout.zero",
                                                    "run.fp8",
                                                    "run.lora",
                                                    "run.optimizer.moment_dtype",
                                                    "run.optimizer.offload_fraction",
                                                    "schedule.cuda_graphs",
                                                    "schedule.delay_wgrad",
                                                    "schedule.micro_batch",
                                                    "schedule.name",
                                                    "schedule.offload",
                                                    "schedule.recompute",
                                                    "schedule.recompute_modules"};
  return levers.contains(key);
}

constexpr const char* nothing = "none";

std::string value_of(const PublishedRow& row, const std::string& key) {
  const auto found = row.keys.find(key);
  return found == row.keys.end() ? nothing : found->second;
}

// Recomputation of modules stands in place of schedule.recompute.
std::string plain(const std::string& key) { return key == "schedule.recompute_modules" ? "schedule.recompute" : key; }

std::string recompute_of(const PublishedRow& row) {
  const std::string modules = value_of(row, "schedule.recompute_modules");
  return modules == nothing ? value_of(row, "schedule.recompute") : modules;
}

// A schedule follows from chunks, but for the one that hides all-to-alls of experts.
bool hides(const PublishedRow& row) {
  const Schedule* schedule = schedule_named(value_of(row, "schedule.name"));
  return schedule != nullptr && schedule->hides_exchanges;
}

// The keys in which two rows differ.
std::set<std::string> differences(const PublishedRow& a, const PublishedRow& b) {
  std::set<std::string> keys, differing;
  for (const PublishedRow* row : {&a, &b})
    for (const auto& [key, value] : row->keys) keys.insert(plain(key));
  for (const std::string& key : keys) {
    const bool same = key == "schedule.recompute" ? recompute_of(a) == recompute_of(b)
                      : key == "schedule.name"    ? hides(a) == hides(b)
                                                  : value_of(a, key) == value_of(b, key);
    if (!same) differing.insert(key);
  }
  if (differing.contains("layout.dispatcher")) differing.erase("transport");  // what carries it goes with it
  return differing;
}

bool measured(const RowResult& result) {
  const PublishedRow& row = *result.row;
  return !row.study.empty() && row.status == RowStatus::ok && row.step_s > 0;
}

}  // namespace

double LeverPair::predicted() const {
  return from->price.step_s > 0 && to->price.step_s > 0 ? to->price.step_s / from->price.step_s : 0;
}

std::vector<LeverPair> lever_pairs(const std::vector<RowResult>& rows) {
  std::vector<LeverPair> pairs;
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t j = i + 1; j < rows.size(); ++j) {
      const PublishedRow &a = *rows[i].row, &b = *rows[j].row;
      if (!measured(rows[i]) || !measured(rows[j]) || a.study != b.study) continue;
      const std::set<std::string> keys = differences(a, b);
      if (keys.size() != 1 || !is_lever(*keys.begin())) continue;
      const std::string& key = *keys.begin();
      const bool recompute = key == "schedule.recompute";
      pairs.push_back({&rows[i], &rows[j], key, recompute ? recompute_of(a) : value_of(a, key),
                       recompute ? recompute_of(b) : value_of(b, key)});
    }
  return pairs;
}

LeverScore score_of(const std::vector<LeverPair>& pairs) {
  LeverScore score;
  std::vector<double> shares;
  for (const LeverPair& pair : pairs) {
    ++score.pairs;
    if (!(pair.predicted() > 0)) continue;
    ++score.priced;
    const double predicted = 1 - pair.predicted(), gain = 1 - pair.measured();
    score.signs += predicted * gain > 0;
    if (gain != 0) shares.push_back(predicted / gain);
  }
  score.middle_share = shares.empty() ? std::numeric_limits<double>::quiet_NaN() : median(shares);
  return score;
}

std::string levers_text(const Validation& validation) {
  const std::vector<LeverPair> pairs = lever_pairs(validation.rows);
  if (pairs.empty()) return "";
  const auto percent = [](double ratio) { return ratio > 0 ? fmt::format("{:+.1f} %", 100 * (ratio - 1)) : "-"; };
  std::vector<std::vector<std::string>> lines{{"lever", "from", "to", "lines", "measured", "predicted"}};
  for (const LeverPair& pair : pairs)
    lines.push_back({pair.from->row->study + ": " + pair.key, pair.before, pair.after,
                     fmt::format("{} {}", pair.from->row->line, pair.to->row->line), percent(pair.measured()),
                     percent(pair.predicted())});
  const LeverScore score = score_of(pairs);
  std::string text = aligned_table(lines, "  ") +
                     fmt::format("  {}, {} of them predicted", counted(score.pairs, "pair"), score.priced);
  if (score.priced > 0)
    text += fmt::format(": the same sign in {}, middle of predicted / measured gain {:.2f}", score.signs,
                        score.middle_share);
  return text + "\n\n";
}

}  // namespace slipway::scenarios
