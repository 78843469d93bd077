#!/bin/sh
# Constants of measured kernels and the error of shapes that a fit did not see: a table per kind. Writes every shape beside
# its prediction to kernels-study/ of the build folder (BUILD, build/ if it is not set).
set -eu
cd "$(dirname "$0")/../../.."
build=${BUILD:-build}
out=$build/kernels-study
mkdir -p "$out"
for kind in gemm attention latent-attention grouped-gemm collective; do
  echo "$kind:"
  "$build/slipway" kernels scenarios/studies/kernels/$kind.csv --csv "$out/$kind.csv"
  echo
done
