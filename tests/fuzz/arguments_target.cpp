// Arguments of trainers. The first line is the ending of the file: yaml, toml, sh or json.
#include "scenarios/predict/load_scenario.h"
#include "scenarios/trainers/import.h"
#include "tests/fuzz/scratch.h"
#include "tests/fuzz/seed_files.h"
#include "tests/fuzz/target.h"

namespace slipway::test {
namespace {

void try_input(std::string_view input) {
  static const Scratch scratch;
  const std::size_t line = input.find('\n');
  if (line == std::string_view::npos) return;
  const std::string_view ending = input.substr(0, line);
  std::string name = "arguments.sh";
  for (const char* known : {"yaml", "toml", "json"})
    if (ending == known) name = std::string("arguments.") + known;
  const std::string path = scratch.write(name, input.substr(line + 1));
  scenarios::ImportChoices choices;
  choices.variables = {{"TP", "2"}};
  choices.without = {"all"};
  const scenarios::Imported imported = scenarios::imported({path}, "", choices, scratch.path("out.yaml"));
  scenarios::describe(imported.defects);
  if (!imported.defects.empty()) return;
  const auto errors = scenarios::load_scenario_text(imported.yaml, scratch.path("out.yaml")).errors;
  promise(errors.empty(), "an imported scenario is refused: " + scenarios::describe(errors));
}

constexpr const char* script = R"(sh
#!/bin/bash
export CUDA_DEVICE_MAX_CONNECTIONS=1
TP=${TP:-2} PP=2
GPUS_PER_NODE=8
MODEL_ARGS=(
    --num-layers 8 --hidden-size 512 --num-attention-heads 8
    --seq-length 1024 --max-position-embeddings 1024
)
TRAINING_ARGS="--micro-batch-size 1 --global-batch-size 64 --bf16 --train-iters 10"
torchrun --nproc-per-node $GPUS_PER_NODE --nnodes 2 pretrain_gpt.py \
    ${MODEL_ARGS[@]} $TRAINING_ARGS \
    --tensor-model-parallel-size $TP --pipeline-model-parallel-size ${PP} --swiglu \
    --vocab-size 32000 --use-distributed-optimizer --log-interval 1
)";

std::vector<std::string> seeds() {
  std::vector<std::string> texts{script};
  for (const char* ending : {"yaml", "toml", "json"})
    for (const std::string& text : texts_below("tests/data/arguments", std::string(".") + ending))
      texts.push_back(std::string(ending) + "\n" + text);
  return texts;
}

const RegisterTarget target({"arguments", try_input, seeds});

}  // namespace
}  // namespace slipway::test
