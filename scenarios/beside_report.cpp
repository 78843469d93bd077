#include <array>

#include "scenarios/beside.h"
#include "scenarios/json_summary.h"
#include "scenarios/readable.h"

namespace slipway {

std::string beside_text(const Neighbours& neighbours) {
  std::vector<std::vector<std::string>> rows{
      {"job", "GPUs", "step alone", "beside the other", "longer by", "mean of"}};
  for (const Neighbour& job : neighbours)
    rows.push_back({job.name, readable_count(job.gpus), readable_seconds(job.alone_s),
                    readable_seconds(job.beside_s), readable_share(job.beside_s / job.alone_s - 1),
                    counted(job.periods, "step")});
  return "Two jobs in one cluster:\n" + aligned_table(rows, "  ");
}

std::span<const JsonKey> beside_json_keys() {
  static constexpr std::array keys{
      JsonKey{"scenarios", "text",
              "list: names of the scenario and of the one beside it; all lists in this order"},
      JsonKey{"gpus", "count", "list: of each job"},
      JsonKey{"alone_s", "s", "list: steady period of a step without the other job, on the same GPUs"},
      JsonKey{"beside_s", "s", "list: mean period of a step while both run"},
      JsonKey{"periods", "count", "list: over how many steps that mean is"},
  };
  return keys;
}

std::string beside_json(const Neighbours& neighbours) {
  JsonSummary json(beside_json_keys());
  std::vector<std::string> names;
  std::vector<std::int64_t> gpus, periods;
  std::vector<double> alone, together;
  for (const Neighbour& job : neighbours) {
    names.push_back(job.name);
    gpus.push_back(job.gpus);
    alone.push_back(job.alone_s);
    together.push_back(job.beside_s);
    periods.push_back(job.periods);
  }
  json.set("scenarios", names);
  json.set("gpus", gpus);
  json.set("alone_s", alone);
  json.set("beside_s", together);
  json.set("periods", periods);
  return json.text();
}

}  // namespace slipway
