#!/bin/sh
# Layers of experts beside dense ones, on two and on four ranks of this machine: predicted with the demo's profile (`make
# demo` first), executed in rounds, compared. Writes to demo/ of the build folder only (BUILD, build/ if it is not set).
# The first two tables have dense models, the last two models with experts; each ends with its median error. Tokens take
# turns among the experts, as they are priced: an untrained router sends all tokens of some layers to one rank.
set -eu
cd "$(dirname "$0")/../.."
build=${BUILD:-build}
out=$build/demo
rounds=${ROUNDS:-5}
machine=$out/machine.yaml
if [ ! -f "$machine" ]; then
  echo "scenarios/demo/experts.sh: there is no $machine; run \`make demo\` first" >&2
  exit 2
fi

# compare NAME RANKS CASE...: the baseline is the demo's, a pipeline of all ranks.
compare() {
  name=$1 ranks=$2
  shift 2
  printf '\n== %s (load %s)\n' "$name on $ranks ranks" "$(cut -d' ' -f1-3 /proc/loadavg)"
  "$build/slipway" confirm scenarios/demo/demo.yaml --set cluster.machine="$machine" --set cluster.gpus_per_node="$ranks" \
    --set layout.pipeline="$ranks" --set run.steps=4 --rounds "$rounds" --out "$out/confirm-$name-$ranks" \
    --baseline "pipeline $ranks:" "$@"
}
experts="model.ffn=256 model.experts=8 model.experts_per_token=2 run.forced_routing=true"

compare dense 2 \
  --case "tensor 2: layout.pipeline=1 layout.tensor=2 layout.sequence_parallel=true" \
  --case "data 2: layout.pipeline=1 layout.data=2" \
  --case "micro-batch 2: schedule.micro_batch=2"
compare dense 4 \
  --case "data 4: layout.pipeline=1 layout.data=4" \
  --case "data 2, pipeline 2: layout.pipeline=2 layout.data=2" \
  --case "tensor 2, pipeline 2: layout.pipeline=2 layout.tensor=2 layout.sequence_parallel=true"
compare experts 2 \
  --case "experts in a pipeline: $experts" \
  --case "experts 2: layout.pipeline=1 layout.data=2 layout.expert=2 $experts" \
  --case "experts 2, micro-batch 2: layout.pipeline=1 layout.data=2 layout.expert=2 schedule.micro_batch=2 $experts" \
  --case "tensor 2: layout.pipeline=1 layout.tensor=2 layout.sequence_parallel=true $experts"
compare experts 4 \
  --case "experts 4: layout.pipeline=1 layout.data=4 layout.expert=4 $experts" \
  --case "experts 2, data 4: layout.pipeline=1 layout.data=4 layout.expert=2 $experts" \
  --case "experts 2, pipeline 2: layout.pipeline=2 layout.data=2 layout.expert=2 $experts"
