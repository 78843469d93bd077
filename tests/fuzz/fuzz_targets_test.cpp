// The fuzz targets without libFuzzer: what a target's seeds, mutations of them, and inputs that were findings do. libFuzzer
// itself looks further (`make fuzz`).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <set>

#include "tests/fuzz/mutation.h"
#include "tests/fuzz/scratch.h"
#include "tests/fuzz/seed_files.h"
#include "tests/fuzz/target.h"

namespace slipway::test {
namespace {

class FuzzTargets : public testing::TestWithParam<Target> {};

TEST_P(FuzzTargets, ReadOrRefuseTheirSeeds) {
  const std::vector<std::string> seeds = GetParam().seeds();
  ASSERT_FALSE(seeds.empty());
  for (const std::string& seed : seeds) {
    EXPECT_LT(seed.size(), 64'000U) << "a seed is small, or no mutation finds its numbers";
    try_one(GetParam(), seed);
  }
}

TEST_P(FuzzTargets, ReadOrRefuseWhatWasAFinding) {
  for (const auto& path : files_below("tests/fuzz/found", "")) {
    if (path.parent_path().filename() != GetParam().name) continue;
    SCOPED_TRACE(path.string());
    try_one(GetParam(), text_of_file(path));
  }
}

// At least 500, and for five seconds. None may take as long as libFuzzer's limits say that it hangs, or as much memory.
TEST_P(FuzzTargets, ReadOrRefuseMutationsOfTheirSeeds) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds enough(5), too_long(10);
  constexpr long too_much_kb = 2L << 20;
  const std::vector<std::string> seeds = GetParam().seeds();
  const Clock::time_point began = Clock::now();
  Clock::time_point last = began;
  for (std::uint32_t i = 0; i < 500 || last - began < enough; ++i) {
    SCOPED_TRACE("mutation " + std::to_string(i));
    const std::string& seed = seeds[i % seeds.size()];
    try_one(GetParam(), i % 8 == 7 ? with_a_long_run(seed, i, 100'000) : mutated(seed, i, 65'536));
    const Clock::time_point now = Clock::now();
    ASSERT_LT(now - last, too_long);
    last = now;
  }
  rusage used{};
  ASSERT_EQ(::getrusage(RUSAGE_SELF, &used), 0);
  EXPECT_LT(used.ru_maxrss, too_much_kb);
}

INSTANTIATE_TEST_SUITE_P(Of, FuzzTargets, testing::ValuesIn(all_targets()),
                         [](const auto& each) { return each.param.name; });

TEST(FuzzTarget, AnExceptionOfAnotherLibraryIsAFinding) {
  const auto with = [](void (*reader)(std::string_view)) { return Target{"made", reader, nullptr}; };
  EXPECT_NO_THROW(try_one(with([](std::string_view) { throw std::runtime_error("refused"); }), ""));
  EXPECT_THROW(try_one(with([](std::string_view) { throw std::out_of_range("at()"); }), ""), std::out_of_range);
  EXPECT_THROW(try_one(with([](std::string_view) { throw std::range_error("of another library"); }), ""),
               std::range_error);
  EXPECT_THROW(try_one(with([](std::string_view) { promise(false, "kept"); }), ""), BrokenPromise);
}

TEST(Mutation, DependsOnItsSeedAloneAndKeepsWithinTheLimit) {
  const std::string text = "step 4\nsamples 32\nheads 4 2\n";
  std::set<std::string> all;
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    const std::string once = mutated(text, seed, 100);
    EXPECT_EQ(once, mutated(text, seed, 100));
    EXPECT_LE(once.size(), 100U);
    all.insert(once);
  }
  EXPECT_GT(all.size(), 150U);
  EXPECT_EQ(with_a_long_run("a", 7, 3), "aaaa");
  EXPECT_THAT(all, testing::Contains(testing::HasSubstr("samples 9223372036854775807")));
}

}  // namespace
}  // namespace slipway::test
