// Machine profiles and models from files, against published parameter counts.
#include "scenarios/language/profiles.h"

#include <gmock/gmock.h>

#include <array>
#include <thread>

#include "scenarios/files/embedded_files.h"
#include "tests/support/scenario_file.h"

namespace slipway::test {
namespace {

using testing::HasSubstr;

Machine sound_machine(const std::string& text) {
  Defects defects;
  const std::optional<Machine> machine = machine_from_yaml(text, "m.yaml", defects);
  EXPECT_EQ(describe(defects), "");
  return machine.value_or(Machine{});
}

TEST(MachineProfile, NumbersArePlainOrCarryUnitAndSource) {
  const Machine machine = sound_machine(
      "name: h\nmemory_bytes: {value: 80 GB, source: data sheet, note: HBM3}\n"
      "peak_flops: {bfloat16: {value: 989.4 TFLOP/s, source: data sheet}, float32: "
      "66.9e12}\nmemory_bandwidth: 3.35 TB/s\n"
      "cores: 3\noverlap_slowdown: {value: 1.2, source: measured, date: 2025-01-02}\n");
  EXPECT_EQ(machine.memory_bytes, 80e9);
  EXPECT_EQ(machine.peak_flops[static_cast<std::size_t>(Dtype::bfloat16)], 989.4e12);
  EXPECT_EQ(machine.peak_flops[static_cast<std::size_t>(Dtype::float32)], 66.9e12);
  EXPECT_EQ(machine.peak_flops[static_cast<std::size_t>(Dtype::float64)], 0.0);
  EXPECT_EQ(machine.memory_bandwidth, 3.35e12);
  EXPECT_EQ(machine.cores, 3);
  EXPECT_EQ(machine.overlap_slowdown, 1.2);
  EXPECT_EQ(machine.gemm_efficiency, 1.0);
}

TEST(MachineProfile, SurvivesWritingAndReading) {
  Machine machine = sound_machine(test_machine());
  machine.gemm_efficiency = 1.0 / 3.0;
  machine.gemm_half = 17.25;
  machine.launch_overhead = 4.2e-6;
  machine.reduce_bandwidth = 1e9 / 7;
  machine.host_to_device = {"pcie5", 55e9 / 3, 8e-6, 0.9};
  machine.device_to_host.bandwidth = 5e10 / 7;
  machine.spread = 0.04;
  machine.deviations = {{"gemm_efficiency", {0.01, -0.002}}, {"node_link.latency", {-0.5, 0.25}}};
  machine.provenance = {"slipway calibrate: a \"quoted\" command", "2025-01-02", "host #1"};
  const std::string text = machine_to_yaml(machine);
  const Machine again = sound_machine(text);
  EXPECT_EQ(machine_to_yaml(again), text);
  EXPECT_EQ(again.gemm_efficiency, machine.gemm_efficiency);
  EXPECT_EQ(again.reduce_bandwidth, machine.reduce_bandwidth);
  EXPECT_EQ(again.host_to_device.bandwidth, machine.host_to_device.bandwidth);
  EXPECT_EQ(again.host_to_device.latency, 8e-6);
  EXPECT_EQ(again.device_to_host.bandwidth, machine.device_to_host.bandwidth);
  ASSERT_EQ(again.deviations.size(), 2);
  EXPECT_EQ(again.deviations[1].name, "node_link.latency");
  EXPECT_THAT(again.deviations[1].parts, testing::ElementsAre(-0.5, 0.25));
  EXPECT_EQ(again.peak_flops, machine.peak_flops);
  EXPECT_EQ(again.network_link.latency, machine.network_link.latency);
  EXPECT_EQ(again.provenance.source, machine.provenance.source);
  EXPECT_EQ(again.provenance.machine, machine.provenance.machine);
}

// NCCL all-reduce of 1 GiB on 2, 3 and 8 V100 of one node (vTrain, MICRO 2024): GB/s of bus bandwidth. DGX-2 has switches.
TEST(MachineProfile, V100IsJoinedByASwitchOnlyInNodesOfMoreThanEight) {
  const Machine& machine = built_in_machine("v100-32gb");
  const double port = machine.node_link.bandwidth * machine.node_link.efficiency;
  for (const auto& [members, measured] : {std::pair{2, 22.55e9}, {3, 45.14e9}, {8, 134.51e9}})
    EXPECT_NEAR(node_share({machine, 1, 8}, members) * port, measured, 0.02 * measured) << members;
  EXPECT_EQ(node_share({machine, 1, 16}, 2), 1);
}

TEST(MachineProfile, EveryMistakeIsReported) {
  Defects defects;
  EXPECT_FALSE(
      machine_from_yaml("name: h\nmemory_bytes: {value: 80 GB, sauce: x}\npeak_flops: {int8: 1}\ngemm_efficiency: 1.5\n"
                        "memory_bandwidth: -1\n",
                        "m.yaml", defects));
  EXPECT_EQ(defects.size(), 4U) << describe(defects);
}

TEST(MachineProfile, DeviationsAreOfFittedNumbersAndHaveAsManyParts) {
  const auto mistake = [](const std::string& deviations) {
    Defects defects;
    EXPECT_FALSE(
        machine_from_yaml("memory_bytes: 1 GB\ncores: 2\ndeviations: " + deviations + "\n", "m.yaml", defects));
    return describe(defects);
  };
  EXPECT_THAT(mistake("{cores: [0.1]}"), testing::HasSubstr("deviations.cores"));
  EXPECT_THAT(mistake("{gemm_efficiency: [0.1, x]}"), testing::HasSubstr("'x' is no number"));
  EXPECT_THAT(mistake("{gemm_efficiency: [0.1, 0.2], gemm_half: [0.1]}"), testing::HasSubstr("deviations.gemm_half"));
}

TEST(BuiltIns, AllLoadWithoutAnError) {
  Defects defects;
  for (const EmbeddedFile& file : embedded_machines()) {
    const auto machine = machine_from_yaml(std::string(file.text), std::string(file.path), defects);
    ASSERT_TRUE(machine) << describe(defects);
    EXPECT_EQ(machine->name, file.name);
  }
  for (const EmbeddedFile& file : embedded_models())
    EXPECT_TRUE(library_model(std::string(file.name), defects)) << describe(defects);
}

// Rows of a table are priced in parallel. ThreadSanitizer reports a race here where the threads are not kept apart.
TEST(BuiltIns, AreLoadedOnceHoweverManyThreadsAsk) {
  const auto files = embedded_machines();
  std::array<std::vector<const Machine*>, 4> seen;
  std::vector<std::thread> threads;
  for (std::vector<const Machine*>& mine : seen)
    threads.emplace_back([&] {
      for (const EmbeddedFile& file : files) mine.push_back(&built_in_machine(std::string(file.name)));
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<const Machine*>& mine : seen) EXPECT_EQ(mine, seen[0]);
  for (std::size_t i = 0; i < files.size(); ++i) EXPECT_EQ(seen[0][i]->name, files[i].name);
}

}  // namespace
}  // namespace slipway::test
