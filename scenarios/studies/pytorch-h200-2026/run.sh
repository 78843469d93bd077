#!/bin/sh
# One H200 with PyTorch 2.11: constants of its kernels beside the built-in profile, then a Llama of a billion parameters
# predicted and as the profiler saw it. Writes to pytorch-h200-study/ of the build folder (BUILD, build/ if it is not set).
set -eu
cd "$(dirname "$0")/../../.."
build=${BUILD:-build}
study=scenarios/studies/pytorch-h200-2026
out=$build/pytorch-h200-study
mkdir -p "$out"
for kind in gemm attention-cudnn attention-flash latent-attention grouped-gemm; do
  echo "$kind:"
  "$build/slipway" kernels $study/$kind.csv
  echo
done
"$build/slipway" kernels $study/gemm.csv $study/attention-cudnn.csv $study/latent-attention.csv $study/grouped-gemm.csv \
  --profile "$out/kernels.yaml" >"$out/kernels.txt"
"$build/slipway" calibrate --kineto $study/rank0.json.gz -o "$out/profiled.yaml" >"$out/profiled.txt"
"$build/slipway" calibrate tests/gpu/llama.yaml --set cluster.machine=h200 --measured $study/micro-benchmarks.txt \
  -o "$out/measured.yaml" >"$out/measured.txt"
for machine in h200 "$out/profiled.yaml" "$out/measured.yaml"; do
  echo "A step by $(basename "$machine"):"
  "$build/slipway" simulate tests/gpu/llama.yaml --set cluster.machine="$machine" --trace "$out/predicted.json" |
    sed -n '3,4p'
  echo
done
"$build/slipway" simulate tests/gpu/llama.yaml --set cluster.machine=h200 --trace "$out/predicted.json" >"$out/predicted.txt"
"$build/slipway" compare "$out/predicted.json" $study/rank0.json.gz
