// A trace of PyTorch's profiler, up to the measurements and phases that follow from it.
#include "scenarios/commands/kineto/kineto_measurements.h"
#include "scenarios/commands/kineto/read_kineto.h"
#include "scenarios/commands/kineto/step_phases.h"
#include "tests/fuzz/scratch.h"
#include "tests/fuzz/seed_files.h"
#include "tests/fuzz/target.h"
#include "tests/support/kineto_file.h"

namespace slipway::test {
namespace {

void try_input(std::string_view input) {
  static const Scratch scratch;
  const std::string path = scratch.write("trace.json", input);
  scenarios::may_be_kineto(path);
  const scenarios::KinetoTrace trace = scenarios::read_kineto(path);
  const scenarios::KinetoEvidence evidence = scenarios::kineto_evidence({trace});
  scenarios::evidence_text({trace}, evidence);
  scenarios::phases_of(trace);
}

std::vector<std::string> seeds() {
  const KinetoShapes product{"[[640], [888, 2880], [2880, 640]]",
                             R"(["c10::BFloat16", "c10::BFloat16", "c10::BFloat16"])"};
  const KinetoShapes attention{"[[2, 8, 512, 64], [2, 8, 512, 64], [2, 8, 512, 64], [], [], []]",
                               R"(["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "Scalar", "Scalar", ""])",
                               R"(["", "", "", "0.", "True", ""])"};
  const KinetoShapes list{"[[[4, 8], [16]], []]", R"(["TensorList", "Scalar"])"};
  KinetoFile file("NVIDIA H100 80GB HBM3", 1, 8, 2);
  file.op("ProfilerStep#1", 0, 0.01, {}, "user_annotation");
  file.op("aten::addmm", 0.001, 0.002, product);
  file.kernel("sm90_xmma_gemm_bf16bf16_bf16f32", 0.0012, 0.0013, 1e-4);
  file.op("aten::_scaled_dot_product_flash_attention", 0.003, 0.004, attention);
  file.kernel("flash_fwd_kernel", 0.0031, 0.0033, 2e-4);
  file.op("aten::_foreach_add_", 0.005, 0.006, list);
  file.kernel("multi_tensor_apply_kernel", 0.0051, 0.0053, 2e-4);
  file.message("allreduce", 1e6, 1e6, "BFloat16", 8, "[0, 1, 2, 3, 4, 5, 6, 7]", "dp", 0.0061, 0.0063, 1e-3);
  file.kernel("Memcpy HtoD (Pinned -> Device)", 0.007, 0.0073, 1e-4, 7, 100, ", \"bytes\": 1048576", "gpu_memcpy");
  file.op("ProfilerStep#2", 0.01, 0.02, {}, "user_annotation");
  file.op("aten::mul", 0.011, 0.012, {"[[1024, 1024], []]", R"(["float", "Scalar"])", R"(["", "2.0"])"});
  file.kernel("elementwise_kernel", 0.0111, 0.0113, 1e-4);
  KinetoFile small;
  small.kernel("k", 0.001, 0.002, 1e-4);
  return {file.text(), small.text()};
}

const RegisterTarget target({"kineto", try_input, seeds});

}  // namespace
}  // namespace slipway::test
