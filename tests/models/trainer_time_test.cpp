// Formulas of step time, against FLOPs over peak where nothing else takes time and against a replay of 1F1B. Also
// against the values of an implementation in another language (numpy) that shares no code with this one.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "models/trainers/time_formulas.h"
#include "tests/support/ideal_run.h"

namespace slipway::test {
namespace {

StepWork llama_30b() {
  StepWork w = llama_13b();
  w.L = 60, w.h = 6656, w.f = 17888, w.a = w.k = 52, w.gpus = 256;
  return w;
}

void lay_out(StepWork& w, double t, double p, double b, double global_batch) {
  w.t = t, w.p = p, w.b = b;
  w.d = w.gpus / (t * p);
  w.m = global_batch / (w.d * b);
}

constexpr std::array aa = {0.75412941,  51.917198,     0.29679685,  0.75925269,   0.25860676,  1.1346757,
                           1.2751556,   0.81048126,    1.0786599,   5.7772185,    15.699527,   1.0333373,
                           118.97072e9, 0.00015569712, 20.185955e9, 0.0051972472, 33.453046e9, 0.88258585,
                           23.353925e9, 0.64793097,    0.5865591,   0.20241573};

TEST(AaScalingTime, AgreesWithTheImplementationInNumpyOnSixLayouts) {
  StepWork w = llama_13b();
  EXPECT_NEAR(seconds_of("aa-scaling", w, aa), 30.9258, 1e-3);
  lay_out(w, 2, 2, 1, 2048);
  w.kernels = Kernels::flash1;
  EXPECT_NEAR(seconds_of("aa-scaling", w, aa), 40.8223, 1e-3);
  w.s = 8192, w.gpus = 128, w.recompute = Recompute::full;
  lay_out(w, 2, 4, 1, 512);
  EXPECT_NEAR(seconds_of("aa-scaling", w, aa), 32.435, 1e-3);

  StepWork big = llama_30b();
  lay_out(big, 1, 4, 1, 2048);
  EXPECT_NEAR(seconds_of("aa-scaling", big, aa), 23.4499, 1e-3);
  big.recompute = Recompute::full, big.kernels = Kernels::fused_softmax;
  lay_out(big, 4, 1, 4, 2048);
  EXPECT_NEAR(seconds_of("aa-scaling", big, aa), 47.6978, 1e-3);

  StepWork small = llama_13b();
  small.gpus = 32, small.sequence_parallel = true;
  lay_out(small, 2, 2, 4, 2048);
  EXPECT_NEAR(seconds_of("aa-scaling", small, aa), 61.0891, 1e-3);
}

constexpr std::array hf = {0.59796983,   297.97026,    0.3106242,    1.8804101,     9.8515873,    35.919484,
                           410.12387e9,  191.34701e9,  0.0039597053, 0.0022546662,  0.0063471771, 0.038179379,
                           0.97957757,   20.0,         55.062089e9,  0.00032615241, 139.0275e9,   0.92164958,
                           0.0064580464, 0.0012417868, 0.017150085};

StepWork nanotron_run(double h, double f, double L, bool tied) {
  StepWork w;
  w.L = L, w.h = h, w.f = f, w.a = w.k = 32, w.V = 131072, w.gated = true, w.tied = tied;
  w.s = 4096, w.sequence_parallel = true, w.zero = 1;
  w.peak_flops = 989e12, w.memory_bandwidth = 3.35e12;
  return w;
}

void lay_out(StepWork& w, double t, double p, double d, double b, double m) {
  w.t = t, w.p = p, w.d = d, w.b = b, w.m = m;
  w.gpus = t * p * d;
}

TEST(NanotronTime, AgreesWithTheImplementationInNumpyOnFourLayouts) {
  StepWork w = nanotron_run(2048, 8192, 16, true);
  lay_out(w, 1, 1, 16, 2, 8);
  EXPECT_NEAR(seconds_of("nanotron", w, hf), 1.69124, 1e-5);
  lay_out(w, 2, 8, 8, 2, 16);
  EXPECT_NEAR(seconds_of("nanotron", w, hf), 0.571747, 1e-6);
  StepWork middle = nanotron_run(3072, 8192, 28, true);
  lay_out(middle, 8, 16, 2, 8, 16);
  EXPECT_NEAR(seconds_of("nanotron", middle, hf), 1.34797, 1e-5);
  StepWork large = nanotron_run(4096, 14336, 32, false);
  large.zero = 0;
  lay_out(large, 4, 1, 128, 1, 2);
  EXPECT_NEAR(seconds_of("nanotron", large, hf), 5.18293, 1e-5);
}

double matrix_flops(const StepWork& w, double passes) {
  return passes * 2 * (layer_matrix_parameters(w) * w.L * w.b * w.s) / w.t + 6 * w.b * w.s * w.V * w.h / w.t;
}

TEST(TimeFormulas, WhereNothingElseCostsTimeAStepIsItsFlopsOverThePeak) {
  for (const TimeModel& model : time_models()) {
    StepWork w = llama_13b();
    w.d = 1, w.gpus = 1, w.m = 3, w.memory_bandwidth = 1e30;
    w.kernels = Kernels::flash2_rmsnorm;
    const bool plain = model.trainer.starts_with("megatron-") && model.trainer != "megatron-core";
    if (plain) w.gated = false, w.f = 4 * w.h, w.recompute = Recompute::full;  // GELU, unfused attention
    const double scores = w.b * w.s * w.s * w.h * w.L;
    const double expected =
        w.m * (plain ? matrix_flops(w, 4) + 4 * 4 * scores : matrix_flops(w, 3) + 3.5 * 2 * scores) / w.peak_flops;
    EXPECT_NEAR(seconds_of(std::string(model.trainer).c_str(), w, ideal(model)), expected, 1e-6 * expected)
        << model.trainer;
  }
}

// Traffic that takes longer than the work sets the step; else the work does.
TEST(LlmFoundryTime, TheLongerOfWorkAndTrafficIsSeen) {
  const TimeModel& model = *time_model_of("llm-foundry");
  StepWork w = llama_13b();
  w.d = 16, w.gpus = 16, w.m = 1, w.zero = 3, w.memory_bandwidth = 1e30;
  std::vector<double> constants = ideal(model);
  const double work = seconds_of("llm-foundry", w, constants);
  constants[8] = 1e9;  // network_bandwidth
  const double parameters = w.L * layer_matrix_parameters(w) + w.V * w.h;
  EXPECT_NEAR(seconds_of("llm-foundry", w, constants), 3 * 2 * parameters * 15 / 16 / 1e9, 1e-3);
  w.d = w.gpus = 8;  // inside the node
  EXPECT_NEAR(seconds_of("llm-foundry", w, constants), work, 1e-6);
}

// torch.utils.checkpoint, non-reentrant: recomputation ends once the last saved tensor exists (early_stop). After the
// last product of a block, from f back to h, nothing is saved.
TEST(LlmFoundryTime, ARecomputedLayerDoesNotRunItsLastProductAgain) {
  const TimeModel& model = *time_model_of("llm-foundry");
  StepWork w = llama_13b();
  w.d = w.gpus = 1, w.m = 3, w.gated = false, w.f = 4 * w.h, w.memory_bandwidth = 1e30;
  const double plain = seconds_of("llm-foundry", w, ideal(model));
  const double M = w.b * w.s, kept_products = 2 * M * (4 * w.h * w.h + w.h * w.f);
  const double attention = 2 * w.b * w.s * w.s * w.h;
  w.recompute = Recompute::full;
  const double again = w.m * w.L * (kept_products + attention) / w.peak_flops;
  EXPECT_NEAR(seconds_of("llm-foundry", w, ideal(model)) - plain, again, 1e-6 * again);
  // The engines run all of a layer's forward pass again, so their backward pass is shorter by as much.
  const StepParts parts = model.parts(w, ideal(model));
  w.recompute = Recompute::none;
  EXPECT_NEAR(model.parts(w, ideal(model)).layer_backward - parts.layer_backward, 2 * M * w.h * w.f / w.peak_flops,
              1e-9);
}

// One forward unit and two backward units of every stage, in the order of 1F1B.
double replayed(const std::vector<double>& stages, int m) {
  const int p = static_cast<int>(stages.size());
  std::vector<std::vector<double>> forward(stages.size(), std::vector<double>(m, -1.0));
  auto backward = forward;
  std::vector<int> done(stages.size(), 0);
  std::vector<double> clock(stages.size(), 0.0);
  for (bool moved = true; moved;) {
    moved = false;
    for (int i = 0; i < p; ++i) {
      const auto s = static_cast<std::size_t>(i);
      const int warm_up = std::min(p - i, m), n = done[s];
      if (n == 2 * m) continue;
      const int steady = n - warm_up;  // after the warm-up: B, F, B, F, ... then only B
      const bool is_backward = n >= warm_up && (steady % 2 == 0 || (steady + 1) / 2 + warm_up > m);
      const int k = !is_backward ? (n < warm_up ? n : warm_up + steady / 2) : std::max((steady + 1) / 2, n - m);
      double ready = 0;
      const auto mb = static_cast<std::size_t>(k);
      if (is_backward) {
        ready = i + 1 < p ? backward[s + 1][mb] : forward[s][mb];
      } else if (i > 0) {
        ready = forward[s - 1][mb];
      }
      if (ready < 0) continue;
      clock[s] = std::max(clock[s], ready) + stages[s] * (is_backward ? 2.0 : 1.0) / 3;
      (is_backward ? backward : forward)[s][mb] = clock[s];
      ++done[s];
      moved = true;
    }
  }
  double end = 0;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    EXPECT_EQ(done[s], 2 * m) << "the replay of this test is stuck";
    end = std::max(end, clock[s]);
  }
  return end;
}

double closed_form(double full, double last, int full_stages, int stages, int m, std::vector<double>& lengths) {
  lengths.assign(stages, 0.0);
  for (int i = 0; i < full_stages; ++i) lengths[i] = full;
  lengths.back() = last;
  UnevenPipeline pipe{
      full, last, static_cast<double>(full_stages), 0, 0, static_cast<double>(stages), static_cast<double>(m)};
  for (const double length : lengths) pipe.total += length;
  return uneven_pipeline_seconds(pipe);
}

TEST(UnevenPipeline, EqualStagesTakeMicroBatchesPlusStagesMinusOne) {
  std::vector<double> lengths;
  EXPECT_NEAR(closed_form(3, 3, 3, 4, 8, lengths), (8 + 3) * 3.0, 1e-12);
  EXPECT_NEAR(replayed(lengths, 8), (8 + 3) * 3.0, 1e-12);
}

// With fewer micro-batches than stages it is an upper bound, up to 8 % too long.
TEST(UnevenPipeline, IsAtMostTwoPercentLongerThanAReplayOf1F1BAndNeverShorter) {
  for (const double last : {0.3, 0.9, 1.0, 1.4, 2.5}) {
    for (const int stages : {2, 4, 8}) {
      for (const int m : {1, 2, 4, 8, 32}) {
        std::vector<double> lengths;
        const double formula = closed_form(1, last, stages - 1, stages, m, lengths);
        const double exact = replayed(lengths, m);
        EXPECT_GE(formula, exact * (1 - 1e-9)) << last << " " << stages << " " << m;
        EXPECT_LE(formula, exact * (m >= stages ? 1.02 : 1.08)) << last << " " << stages << " " << m;
      }
    }
  }
}

// 16 layers of 2048 and a head of 5.33 of them: ⌈21.3 / 4⌉ = 6 each, the last stage has none left.
TEST(SplitByCost, CountsTheHeadInLayers) {
  StepWork w = nanotron_run(2048, 8192, 16, true);
  w.p = 2;
  EXPECT_DOUBLE_EQ(split_by_cost(w).full, 10);
  EXPECT_DOUBLE_EQ(split_by_cost(w).last, 6);
  w.p = 8;
  EXPECT_DOUBLE_EQ(split_by_cost(w).full, 3);
  EXPECT_DOUBLE_EQ(split_by_cost(w).last, 0);
}

TEST(SplitByCost, OneStageHasAllLayers) { EXPECT_DOUBLE_EQ(split_by_cost(llama_13b()).last, 40); }

}  // namespace
}  // namespace slipway::test
