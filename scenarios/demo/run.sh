#!/bin/sh
# The loop in one go, on this machine: measure it, fit it, predict what was not measured, execute that too,
# and say how far off the prediction was. Two ranks with one thread each. Writes to demo/ of the build
# folder only (BUILD, build/ if it is not set).
set -eu
cd "$(dirname "$0")/../.."
build=${BUILD:-build}
slipway=$build/slipway
scenario=scenarios/demo/demo.yaml
out=$build/demo
mkdir -p "$out"

start=$(date +%s)
say() { printf '\n== %s (after %s s)\n' "$*" $(($(date +%s) - start)); }

# What the machine says of itself; calibrate measures the rest.
cat >"$out/start.yaml" <<EOF
name: this-machine
memory_bytes: $(awk '/^MemTotal:/ {printf "%.0f", $2 * 1024 / 2}' /proc/meminfo)
cores: $(nproc)
EOF

say "1. Micro-benchmarks on both ranks at once, and a first machine profile from them"
$slipway calibrate $scenario --set cluster.machine="$out/start.yaml" --measure -o "$out/first.yaml"

say "2. The scenario as it stands (pipeline 2), really trained"
$slipway execute $scenario --set cluster.machine=$out/first.yaml --out $out/pipeline-2 --overwrite

say "3. The profile fitted to the micro-benchmarks and to that run, task by task"
$slipway calibrate $scenario --set cluster.machine="$out/start.yaml" --measure --trace $out/pipeline-2/trace.json -o $out/machine.yaml

say "4. What the simulator makes of the run that it was fitted to"
$slipway simulate $scenario --set cluster.machine=$out/machine.yaml --trace $out/predicted.json
$slipway compare $out/predicted.json $out/pipeline-2/trace.json --report $out/compare.html

say "5. Four cases that the fit has not seen: predicted, executed in five rounds, compared"
$slipway confirm $scenario --set cluster.machine=$out/machine.yaml --set run.steps=4 --rounds 5 --out $out/confirm \
  --report $out/confirm.html \
  --baseline "pipeline 2:" \
  --case "tensor 2: layout.pipeline=1 layout.tensor=2 layout.sequence_parallel=true" \
  --case "data 2: layout.pipeline=1 layout.data=2" \
  --case "micro-batch 2: schedule.micro_batch=2" \
  --case "width 512: model.hidden=512 model.ffn=1408 model.heads=8 model.kv_heads=8"
