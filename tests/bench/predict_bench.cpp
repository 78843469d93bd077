// The speed of one prediction in a process that makes many: a scenario's text with one key changed becomes a JSON answer.
//
//   build/tests/predict_bench
//
// `Predict` has another sequence length each time, so nothing of the answer before is of use. CPU is the process's and its
// children's, which simulate. The goal is 200 predictions a second. tests/bench/command_times.py times commands.
#include <benchmark/benchmark.h>

#include <sys/resource.h>

#include <fstream>
#include <iterator>
#include <string>

#include "scenarios/predict/load_scenario.h"
#include "scenarios/predict/prediction.h"

namespace slipway::test {
namespace {

double cpu_seconds() {
  double seconds = 0;
  for (const auto who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage use{};
    getrusage(who, &use);
    for (const timeval& part : {use.ru_utime, use.ru_stime})
      seconds += static_cast<double>(part.tv_sec) + 1e-6 * static_cast<double>(part.tv_usec);
  }
  return seconds;
}

void Predict(benchmark::State& state, const std::string& example) {
  const std::string path = SLIPWAY_SOURCE_DIR "/scenarios/examples/" + example + ".yaml";
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  int round = 0;
  const auto predict_once = [&] {
    const std::string change = "model.sequence=" + std::to_string(4096 + 8 * (round++ % 500));
    const PredictedStep predicted = predict(checked_scenario({path, {change}, text}), {});
    std::string answer = json_text(predicted.step.prepared, predicted.prediction);
    benchmark::DoNotOptimize(answer);
  };
  predict_once();  // reads what is read once
  const double begin = cpu_seconds();
  for (auto _ : state) predict_once();
  state.counters["CPU ms"] = 1e3 * (cpu_seconds() - begin) / static_cast<double>(state.iterations());
}

BENCHMARK_CAPTURE(Predict, llama_8b_64xh100, "llama-8b-64xh100")->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Predict, llama_70b_1024xh100, "llama-70b-1024xh100")->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace slipway::test
