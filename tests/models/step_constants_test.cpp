// The table of step constants, and the facts and prices that it changes.
#include "models/machine/step_constants.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace slipway::test {
namespace {

TEST(StepConstants, EachFieldHasItsOwnRowWithBookSpreadAndSource) {
  StepConstants constants;
  std::set<const double*> fields;
  std::set<std::string> names;
  for (const StepConstant& constant : step_constants()) {
    fields.insert(&(constants.*constant.value));
    names.insert(constant.name);
    EXPECT_GT(constant.book, 0) << constant.name;
    EXPECT_GT(std::max({constant.spread, constant.machine, constant.trainer, constant.site}), 0) << constant.name;
    EXPECT_NE(std::string(constant.source), "") << constant.name;
    EXPECT_NE(std::string(constant.unit), "") << constant.name;
  }
  EXPECT_EQ(fields.size(), step_constant_count);
  EXPECT_EQ(names.size(), step_constant_count);
}

TEST(StepConstants, TheBookIsTheBooksValues) {
  const StepConstants book = book_constants();
  for (const StepConstant& constant : step_constants()) EXPECT_EQ(book.*constant.value, constant.book);
}

TEST(StepConstants, ATrainerDeviatesInAtMostSixOfThem) {
  int of_trainers = 0, of_sites = 0;
  for (const StepConstant& constant : step_constants()) {
    of_trainers += constant.trainer > 0 ? 1 : 0;
    of_sites += constant.site > 0 ? 1 : 0;
  }
  EXPECT_LE(of_trainers, 6);
  EXPECT_LE(of_sites, 4);
}

}  // namespace
}  // namespace slipway::test
