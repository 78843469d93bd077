#!/bin/sh
# build.sh BUILD JOBS [OPTION...]: builds BUILD/slipway while LibTorch is on its way into .venv/, then BUILD/slipway-rank. The first
# needs no LibTorch and can predict as soon as it is there. OPTIONs are CMake's, for example -G Ninja.
set -eu
case "$#" in 0 | 1) sed -n '2,3s/^# //p' "$0" >&2; exit 2 ;; esac
cd "$(dirname "$0")/.."
build=$1
jobs=$2
shift 2

if [ -e "$build/slipway" ]; then
  setup/step.sh "LibTorch" setup/libtorch.sh
else
  mkdir -p "$build"
  setup/libtorch.sh >"$build/libtorch.log" 2>&1 &
  torch=$!
  trap 'kill "$torch" 2>/dev/null || true' EXIT
  setup/step.sh "Configuring" cmake -S . -B "$build" "$@"
  setup/step.sh "Building $build/slipway, while LibTorch is fetched" cmake --build "$build" --parallel "$jobs" --target slipway
  echo "    $build/slipway simulate scenarios/examples/llama-8b-64xh100.yaml predicts:"
  "$build/slipway" simulate scenarios/examples/llama-8b-64xh100.yaml | sed -n '3,4s/^/  /p'
  trap - EXIT
  wait "$torch" || { cat "$build/libtorch.log" >&2; exit 1; }
  cat "$build/libtorch.log"
fi
setup/step.sh "Configuring" cmake -S . -B "$build" "$@"
setup/step.sh "Building $build/slipway and $build/slipway-rank" cmake --build "$build" --parallel "$jobs" --target slipway slipway-rank
