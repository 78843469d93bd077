// Traces of PyTorch's profiler: what is read of them, and what `slipway calibrate --kineto` fits to them. The traces are
// made of known constants, which must come back.
#include "models/machine/ring.h"
#include "scenarios/commands/kineto/kineto_trace.h"
#include "scenarios/commands/kineto/read_kineto.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "models/fit/measurement.h"
#include "scenarios/commands/kineto/kernel_uses.h"
#include "scenarios/commands/kineto/kineto_measurements.h"
#include "scenarios/language/profiles.h"
#include "tests/support/command_test.h"
#include "tests/support/kineto_file.h"

namespace slipway::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Seconds of a measurement's line by the machine's constants of kernels.
double kernel_seconds(const std::string& line, const Machine& machine) {
  std::istringstream one(line + " seconds=1");
  auto [key, table] = *kernel_tables(read_measurements(one, "made"), machine).begin();
  return seconds_of(table, values_of(machine.kernels, key).value(), table.rows.front());
}

// Its products, attention and collectives take longer than the built-in machine's.
Machine slower_h100() {
  Machine machine = built_in_machine("h100-80gb");
  machine.kernels.gemm[static_cast<std::size_t>(Format::bfloat16)] = {0.6, 900, 0.5, 4e-6, 0};
  machine.kernels.collective[static_cast<std::size_t>(Collective::all_reduce)] = {0.7, 0.5, 9e-6, 1e-6, 6e-9};
  for (AttentionOfWidth& each : machine.kernels.attention[static_cast<std::size_t>(Format::bfloat16)])
    if (each.head_dim == 128) each.constants = {0.45, 600, 1.2e4, 0.5, 2e-5};
  return machine;
}

KinetoShapes two_matrices(double m, double n, double k) {
  return {fmt::format("[[{:.0f}, {:.0f}], [{:.0f}, {:.0f}]]", m, k, k, n), R"(["c10::BFloat16", "c10::BFloat16"])"};
}

KinetoShapes causal_attention(int sequences, int heads, int tokens) {
  const std::string each = fmt::format("[{}, {}, {}, 128]", sequences, heads, tokens);
  return {"[" + each + ", " + each + ", " + each + ", [], [], []]",
          R"(["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "Scalar", "Scalar", "Scalar"])",
          R"(["", "", "", "0.", "True", "False"])"};
}

// A trace of one rank of two whose kernels take what the machine says. `late_s`: the other rank waits so long for this one.
KinetoFile made_on(const Machine& machine, int rank, double late_s) {
  KinetoFile file("NVIDIA H100 80GB HBM3", rank, 2);
  double host = 1e-3, device = 2e-3;
  const auto run = [&](const std::string& op, const KinetoShapes& shapes, const std::string& kernel, double seconds) {
    file.op(op, host, host + 8e-6, shapes);
    file.kernel(kernel, host + 2e-6, device, seconds);
    host += 10e-6, device += seconds + 1e-6;
  };
  for (const int m : {1024, 4096, 8192})
    for (const int n : {512, 2048, 8192})
      for (const int k : {1024, 4096})
        run("aten::mm", two_matrices(m, n, k), "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn",
            kernel_seconds(fmt::format("measure gemm m={} n={} k={} dtype=bfloat16", m, n, k), machine));
  for (const int sequences : {1, 4})
    for (const int tokens : {512, 1024, 2048, 4096, 8192, 16384})
      run("aten::_scaled_dot_product_flash_attention", causal_attention(sequences, 16, tokens),
          "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128>>(Flash_fwd_params)",
          kernel_seconds(fmt::format("measure attention pass=forward batch_heads={} s={} d=128 dtype=bfloat16",
                                     sequences * 16, tokens),
                         machine));
  for (double bytes = 1 << 20; bytes <= (1 << 30); bytes *= 2) {
    const double seconds = kernel_seconds(fmt::format("measure all-reduce bytes={:.0f} members=2", bytes), machine);
    // The rank that comes first waits inside its kernel.
    const double waits = rank == 0 ? late_s : 0;
    file.message("allreduce", bytes / 2, bytes / 2, "BFloat16", 2, "[0, 1]", "default_pg", host, device,
                 seconds + waits);
    host += 10e-6, device += seconds + late_s + 1e-6;
  }
  return file;
}

class Kineto : public CommandTest {
 protected:
  Machine fitted() const {
    Defects defects;
    const auto machine = machine_from_yaml(text_of(path("m.yaml")), "m.yaml", defects);
    EXPECT_TRUE(machine.has_value());
    return machine.value_or(Machine{});
  }
  Answer calibrate(const std::string& trace) {
    return slipway_with({"calibrate", "--kineto", trace, "-o", path("m.yaml")});
  }
  std::string refusal(const std::string& text) {
    std::ofstream(path("t.json")) << text;
    const Answer answer = calibrate(path("t.json"));
    EXPECT_EQ(answer.status, status_usage);
    EXPECT_FALSE(std::filesystem::exists(path("m.yaml"))) << "nothing is written";
    return answer.err;
  }
};

TEST_F(Kineto, TheConstantsThatATraceWasMadeOfComeBack) {
  const Machine truth = slower_h100();
  made_on(truth, 0, 3e-3).write_gzip(path("rank0.json.gz"));
  made_on(truth, 1, 3e-3).write(path("rank1.json"));
  const Answer answer = slipway_with(
      {"calibrate", "--kineto", path("rank0.json.gz"), "--kineto", path("rank1.json"), "-o", path("m.yaml")});
  ASSERT_EQ(answer.status, status_done) << answer.err;
  EXPECT_THAT(answer.out, AllOf(HasSubstr("rank 0 of 2"), HasSubstr("rank 1 of 2"), HasSubstr("gemm bfloat16"),
                                HasSubstr("attention bfloat16 128"), HasSubstr("collective all-reduce")));
  const Machine machine = fitted();
  const auto check = [&](const KernelKey& key, double tolerance) {
    const KernelValues found = values_of(machine.kernels, key).value(), made = values_of(truth.kernels, key).value();
    EXPECT_NEAR(found[0] / made[0], 1, tolerance) << models::name_of(key) << ": share of the peak";
  };
  check({KernelKind::gemm, Format::bfloat16}, 0.02);
  check({KernelKind::attention, Format::bfloat16, 128}, 0.03);
  // What the constants are for: seconds of shapes that the trace does not have.
  for (const char* line :
       {"measure gemm m=3000 n=3000 k=3000 dtype=bfloat16", "measure gemm m=16384 n=1024 k=2048 dtype=bfloat16",
        "measure attention pass=forward batch_heads=40 s=3000 d=128 dtype=bfloat16",
        "measure all-reduce bytes=100000000 members=2", "measure all-reduce bytes=3000000 members=2"})
    EXPECT_NEAR(kernel_seconds(line, machine) / kernel_seconds(line, truth), 1, 0.03) << line;
}

TEST_F(Kineto, AMessageTakesWhatTheMemberTakesThatWaitedForNobody) {
  made_on(slower_h100(), 0, 5e-3).write(path("rank0.json"));
  made_on(slower_h100(), 1, 5e-3).write(path("rank1.json"));
  const std::vector<KinetoTrace> traces{read_kineto(path("rank0.json")), read_kineto(path("rank1.json"))};
  const KinetoEvidence evidence = kineto_evidence(traces);
  ASSERT_FALSE(evidence.messages.empty());
  for (const MessageTime& each : evidence.messages)
    EXPECT_NEAR(
        each.seconds,
        kernel_seconds(fmt::format("measure all-reduce bytes={:.0f} members=2", each.call.bytes), slower_h100()), 1e-8);
}

TEST_F(Kineto, AGroupOfSeveralNodesMeasuresTheNetwork) {
  Machine truth = built_in_machine("h100-80gb");
  truth.network_link.efficiency = 0.6, truth.network_link.latency = 20e-6;
  KinetoFile file("NVIDIA H100 80GB HBM3", 0, 16);
  double at = 1e-3;
  for (double bytes = 1e5; bytes < 2e9; bytes *= 3) {
    const Link& link = truth.network_link;
    const double seconds =
        ring_seconds(Collective::all_gather, 16, bytes, link.latency, link.bandwidth * link.efficiency, 0);
    file.message("_allgather_base", bytes / 32, bytes / 2, "BFloat16", 16,
                 "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]", "mesh_dp", at, at + 1e-4, seconds);
    at += seconds + 1e-3;
  }
  file.write(path("t.json"));
  const KinetoEvidence evidence = kineto_evidence({read_kineto(path("t.json"))});
  const Machine found =
      models::calibrate(built_in_machine("h100-80gb"), observations_of(evidence.measurements)).machine;
  EXPECT_NEAR(found.network_link.efficiency, 0.6, 0.006);
  EXPECT_NEAR(found.network_link.latency, 20e-6, 1e-6);
}

TEST_F(Kineto, TheKernelsOfAnOperatorAreItsOwnAndThoseOfTheOperatorsInside) {
  KinetoFile file;
  file.op("aten::linear", 0, 100e-6);
  file.op("aten::addmm", 10e-6, 90e-6,
          {"[[64], [128, 256], [256, 64], [], []]", R"(["float", "float", "float", "Scalar", "Scalar"])",
           R"(["", "", "", "1", "1"])"});
  file.op("aten::fill_", 20e-6, 30e-6);
  file.kernel("splitK_fill", 25e-6, 200e-6, 2e-6);
  file.kernel("ampere_sgemm_128x64_tn", 50e-6, 210e-6, 5e-6);
  file.kernel("ampere_sgemm_reduce", 60e-6, 220e-6, 1e-6);
  file.write(path("t.json"));
  const KinetoTrace trace = read_kineto(path("t.json"));
  const std::vector<KernelUse> uses = kernel_uses(trace);
  ASSERT_EQ(uses.size(), 1u);
  EXPECT_EQ(uses[0].kind, UseKind::product);
  EXPECT_EQ(uses[0].kernels, 3);
  EXPECT_NEAR(uses[0].seconds, 8e-6, 1e-12);
  const auto shape = product_of(trace, uses[0]).shape.value();
  EXPECT_EQ((std::array{shape.m, shape.n, shape.k}), (std::array{128.0, 64.0, 256.0}));
  EXPECT_EQ(shape.dtype, Dtype::float32);
}

TEST_F(Kineto, CopiesToPinnedMemoryMeasureTheHostsLinkAndCopiesInsideTheGpuItsMemory) {
  KinetoFile file;
  const KinetoShapes floats{"[[4194304], [4194304], []]", R"(["float", "float", "Scalar"])", R"(["", "", "False"])"};
  const auto copy = [&](double at, const std::string& name) {
    file.op("aten::copy_", at, at + 10e-6, floats);
    file.kernel(name, at + 5e-6, at + 20e-6, 500e-6, 7, 100, ", \"bytes\": 16777216", "gpu_memcpy");
  };
  copy(0, "Memcpy HtoD (Pinned -> Device)");
  copy(1e-3, "Memcpy HtoD (Pageable -> Device)");
  copy(2e-3, "Memcpy DtoH (Device -> Pinned)");
  copy(3e-3, "Memcpy DtoD (Device -> Device)");
  file.op("aten::mm", 4e-3, 4.01e-3, two_matrices(64, 64, 64));
  file.kernel("gemm", 4.005e-3, 4.1e-3, 10e-6);
  file.write(path("t.json"));
  std::map<std::string, std::string> bytes;
  for (const Measurement& each : kineto_evidence({read_kineto(path("t.json"))}).measurements)
    if (each.fields.contains("bytes")) bytes[each.what] = each.fields.at("bytes");
  EXPECT_EQ(bytes, (std::map<std::string, std::string>{
                       {"device-to-host", "16777216"}, {"elementwise", "33554432"}, {"host-to-device", "16777216"}}));
}

TEST_F(Kineto, AttentionThatIsNotCausalIsNamedAndNotFitted) {
  KinetoFile file;
  KinetoShapes shapes = causal_attention(2, 4, 64);
  shapes.values = R"(["", "", "", "0.", "False", "False"])";
  file.op("aten::_scaled_dot_product_flash_attention", 0, 10e-6, shapes);
  file.kernel("flash_fwd_kernel", 5e-6, 20e-6, 10e-6);
  file.write(path("t.json"));
  const KinetoEvidence evidence = kineto_evidence({read_kineto(path("t.json"))});
  EXPECT_TRUE(evidence.measurements.empty());
  EXPECT_EQ(evidence.unused.at("aten::_scaled_dot_product_flash_attention: not causal"), 1);
}

TEST_F(Kineto, AProductBesideAMessageIsLeftOut) {
  KinetoFile file;
  file.op("aten::mm", 0, 10e-6, two_matrices(64, 64, 64));
  file.kernel("gemm", 5e-6, 100e-6, 50e-6);
  file.message("allreduce", 1e6, 1e6, "Float", 2, "[0, 1]", "default_pg", 12e-6, 120e-6, 100e-6);
  file.write(path("t.json"));
  const KinetoEvidence evidence = kineto_evidence({read_kineto(path("t.json"))});
  EXPECT_EQ(evidence.unused.at("aten::mm: beside a message"), 1);
}

TEST_F(Kineto, ShapesOfAnotherFormAreOneErrorWithTheRemedy) {
  KinetoFile bare;
  bare.op("aten::mm", 0, 10e-6);
  bare.kernel("gemm", 5e-6, 20e-6, 10e-6);
  EXPECT_THAT(refusal(bare.text()), HasSubstr("record_shapes=True"));
  KinetoFile cpu_only;
  cpu_only.op("aten::mm", 0, 10e-6, two_matrices(64, 64, 64));
  EXPECT_THAT(refusal(cpu_only.text()), AllOf(HasSubstr("no kernel of a GPU"), HasSubstr("ProfilerActivity.CUDA")));
  EXPECT_THAT(refusal("[[-1, 1, 37888, 7]]"), HasSubstr("is no trace of PyTorch's profiler: it has no traceEvents"));
  EXPECT_THAT(refusal("no JSON"), HasSubstr("is no trace of PyTorch's profiler"));
  EXPECT_THAT(refusal(R"({"otherData": {"engine": "simgrid"}, "traceEvents": []})"),
              HasSubstr("is a trace of Slipway"));
  EXPECT_THAT(refusal(bare.text().substr(0, bare.text().size() - 40)), HasSubstr("is cut or damaged at byte"));
  KinetoFile other_gpu("Imagined GPU 9000");
  other_gpu.op("aten::mm", 0, 10e-6, two_matrices(64, 64, 64));
  other_gpu.kernel("gemm", 5e-6, 20e-6, 10e-6);
  EXPECT_THAT(refusal(other_gpu.text()), AllOf(HasSubstr("is of Imagined GPU 9000, which no built-in machine is"),
                                               HasSubstr("--machine with one of: a100-40gb")));
  for (const char* card : {"NVIDIA H100 PCIe", "NVIDIA H100 NVL", "NVIDIA A100-PCIE-40GB"}) {
    KinetoFile of_card(card);
    of_card.op("aten::mm", 0, 10e-6, two_matrices(64, 64, 64));
    of_card.kernel("gemm", 5e-6, 20e-6, 10e-6);
    EXPECT_THAT(refusal(of_card.text()), HasSubstr(std::string("is of ") + card + ", which no built-in machine is"));
  }
}

// What one H200 did with PyTorch 2.11 (scenarios/studies/pytorch-h200-2026): its header has nanoseconds since 1970.
TEST_F(Kineto, ATraceOfPyTorch211IsRead) {
  const KinetoTrace trace = read_kineto(SLIPWAY_SOURCE_DIR "/scenarios/studies/pytorch-h200-2026/rank0.json.gz");
  EXPECT_EQ(trace.device, "NVIDIA H200");
  EXPECT_EQ(trace.kernels.size(), 6903U);  // cat kernel, gpu_memcpy and gpu_memset, counted by Python's json
  EXPECT_TRUE(trace.has_shapes);
  const KinetoEvidence evidence = kineto_evidence({trace});
  const auto products = std::count_if(evidence.measurements.begin(), evidence.measurements.end(),
                                      [](const auto& each) { return each.what == "gemm"; });
  EXPECT_EQ(products, 14) << "shapes of aten::mm";
}

// Numbers that are text, and such that no int holds.
TEST_F(Kineto, NumbersThatDoNotFitAreNoUndefinedConversions) {
  KinetoFile file;
  file.op("aten::mm", 0, 10e-6, two_matrices(64, 64, 64));
  file.kernel("nan_kernel", 5e-6, 20e-6, 10e-6);
  file.kernel("k", 6e-6, 40e-6, 10e-6, 7, 100,
              R"(, "stream": "1e300", "device": 1e17, "bytes": "nan", "Group size": 1e17)");
  file.write(path("t.json"));
  const KinetoTrace trace = read_kineto(path("t.json"));
  ASSERT_EQ(trace.kernels.size(), 2U);
  EXPECT_EQ(trace.kernels[1].stream, 0);
  EXPECT_EQ(trace.kernels[1].device, 2'000'000'000);
  EXPECT_EQ(trace.kernels[1].bytes, 0);
}

TEST_F(Kineto, ACutGzipIsRefused) {
  made_on(slower_h100(), 0, 0).write_gzip(path("t.json.gz"));
  std::filesystem::resize_file(path("t.json.gz"), std::filesystem::file_size(path("t.json.gz")) / 2);
  const Answer answer = calibrate(path("t.json.gz"));
  EXPECT_EQ(answer.status, status_usage);
  EXPECT_THAT(answer.err, HasSubstr("ends in the middle of its compressed data; copy it again"));
  EXPECT_EQ(calibrate(path("missing.json")).status, status_usage);
}

TEST_F(Kineto, WithoutAScenarioOtherEvidenceIsRefused) {
  made_on(slower_h100(), 0, 0).write(path("t.json"));
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--measure"}, {"--set", "layout.tensor=2"}, {"--runs", "r.csv"}}) {
    std::vector<std::string> args{"calibrate", "--kineto", path("t.json"), "-o", path("m.yaml")};
    args.insert(args.end(), more.begin(), more.end());
    EXPECT_EQ(slipway_with(args).status, status_usage) << more[0];
  }
  const Answer named =
      slipway_with({"calibrate", "--kineto", path("t.json"), "--machine", "a100-80gb", "-o", path("m.yaml")});
  EXPECT_EQ(named.status, status_done) << named.err;
}

}  // namespace
}  // namespace slipway::test
