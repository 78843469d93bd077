#include "models/fit/folds.h"

#include <map>
#include <random>
#include <set>
#include <utility>

namespace slipway::models {

std::vector<int> folds_of(const std::vector<std::string>& keys, int folds) {
  const std::set<std::string> distinct(keys.begin(), keys.end());
  std::vector<std::string> order(distinct.begin(), distinct.end());
  std::mt19937_64 random(20231);
  // Fisher and Yates, written out, because std::shuffle differs between standard libraries.
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  std::map<std::string, int> part;
  for (std::size_t i = 0; i < order.size(); ++i) part[order[i]] = static_cast<int>(i) % folds;
  std::vector<int> result;
  for (const std::string& key : keys) result.push_back(part.at(key));
  return result;
}

}  // namespace slipway::models
