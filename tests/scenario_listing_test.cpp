// The lists name everything that the loader takes.
#include "scenarios/listing.h"

#include <gmock/gmock.h>

#include <sstream>

#include "models/memory_constants.h"
#include "scenarios/embedded_files.h"
#include "schedules/action.h"

namespace slipway {
namespace {

using testing::HasSubstr;

TEST(Listing, NamesEveryModelMachineScheduleAndKey) {
  std::ostringstream models, machines, schedules, keys;
  list_models(models);
  list_machines(machines);
  list_schedules(schedules);
  list_keys(keys, scenario_keys());
  for (const EmbeddedFile& file : embedded_models())
    EXPECT_THAT(models.str(), HasSubstr(std::string(file.name)));
  for (const EmbeddedFile& file : embedded_machines())
    EXPECT_THAT(machines.str(), HasSubstr(std::string(file.name)));
  for (const Schedule& schedule : all_schedules())
    EXPECT_THAT(schedules.str(), HasSubstr(schedule.summary));
  for (const Key& key : scenario_keys()) EXPECT_THAT(keys.str(), HasSubstr(std::string(key.path) + "\n"));
}

TEST(Listing, NamesEveryStackAndItsConstants) {
  std::ostringstream stacks, keys;
  list_stacks(stacks);
  list_stack_keys(keys);
  EXPECT_THAT(stacks.str(), testing::ContainsRegex("megatron-core +h100-94gb +memory +3 / 9"));
  EXPECT_THAT(stacks.str(), testing::ContainsRegex("nanotron +h100-80gb +time"));
  for (const MemoryParameter& parameter : memory_parameters())
    EXPECT_THAT(keys.str(), HasSubstr("memory.MACHINE." + std::string(parameter.name)));
  EXPECT_THAT(keys.str(), HasSubstr("time.MACHINE.gemm_efficiency"));
}

TEST(Listing, ShowsPublishedSizes) {
  std::ostringstream models, machines;
  list_models(models);
  list_machines(machines);
  EXPECT_THAT(models.str(), testing::ContainsRegex(
                                "llama-3\\.1-8b +llama +8\\.03 G +32 +4096 +14336 +32 +8 +128256 +8192"));
  EXPECT_THAT(machines.str(), testing::ContainsRegex("v100-32gb +125 TFLOP/s"));  // of float16: it has no bfloat16
  EXPECT_THAT(machines.str(), testing::ContainsRegex(
                                  "h100-80gb +989\\.4 TFLOP/s +85\\.9 GB +3\\.35 TB/s +nvlink4 450 GB/s"));
}

}  // namespace
}  // namespace slipway
