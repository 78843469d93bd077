#!/bin/sh
# The loop in one go, on this machine: measure it, fit it, predict what was not measured, execute that too,
# and say how far off the prediction was. Two ranks, one core each. Writes to build/demo only.
set -eu
cd "$(dirname "$0")/../.."
slipway=build/slipway
scenario=scenarios/demo/demo.yaml
out=build/demo
mkdir -p "$out"

say() { printf '\n== %s\n' "$*"; }

say "1. Calibrate: micro-benchmarks on both ranks, then pipeline 2 executed; fit a machine profile"
$slipway calibrate $scenario --measure --execute -o $out/machine.yaml --out $out/calibration

say "2. What the simulator makes of the same run, task by task"
$slipway simulate $scenario --set cluster.machine=$out/machine.yaml --trace $out/predicted.json
$slipway compare $out/predicted.json $out/calibration/trace.json

say "3. Four cases that the fit has not seen: predict, execute, compare"
$slipway confirm $scenario --set cluster.machine=$out/machine.yaml --out $out/confirm \
  --baseline "pipeline 2 (calibrated on)": \
  --case "tensor 2: layout.pipeline=1 layout.tensor=2 layout.sequence_parallel=true" \
  --case "data 2: layout.pipeline=1 layout.data=2" \
  --case "micro-batch 2: schedule.micro_batch=2" \
  --case "width 512: model.hidden=512 model.ffn=1408 model.heads=8 model.kv_heads=8"
