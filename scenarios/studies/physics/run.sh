#!/bin/sh
# The model of kernels and of a step against all that was measured: constants, what it leaves, and what each effect contributes. Fits
# all again (minutes). Writes the answer, every run and the tables to physics-study/ of the build folder (BUILD, build/
# if it is not set). With --write also the tables of the README.
set -eu
cd "$(dirname "$0")/../../.."
study=scenarios/studies/physics
build=${BUILD:-build}
out=$build/physics-study
mkdir -p "$out"
"$build/slipway" validate --pooled --json --rows "$out/runs.csv" > "$out/validation.json"
"$build/slipway" kernels scenarios/studies/kernels/*.csv --csv "$out/shapes.csv" > "$out/kernels.txt"
readme=
if [ "${1:-}" = --write ]; then readme=$study/README.md; fi
python3 $study/tables.py "$out/validation.json" "$out/runs.csv" "$out/shapes.csv" $readme
