#!/bin/sh
# LibTorch, from PyPI's PyTorch wheel in .venv/. --no-deps: CPU ranks need two of its NVIDIA packages (the wheel's
# libtorch_cpu.so links their libraries), not the other 3.3 GB; typing_extensions is what torchrun imports.
# To run on GPUs, install all of them elsewhere (pip install torch==2.11.0) and set SLIPWAY_TORCH.
set -eu
cd "$(dirname "$0")/.."

pins="torch==2.11.0 nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85 typing_extensions==4.16.0"

if [ -n "${SLIPWAY_TORCH:-}" ]; then
  for needed in lib/libtorch_cpu.so lib/libc10.so include/ATen/ATen.h version.py; do
    if [ ! -e "$SLIPWAY_TORCH/$needed" ]; then
      echo "setup/libtorch.sh: SLIPWAY_TORCH=$SLIPWAY_TORCH has no $needed. It must be the torch/ folder of an" >&2
      echo "installed PyTorch 2.11 (.../site-packages/torch); or unset it, and one is installed in .venv/." >&2
      exit 1
    fi
  done
  version=$(sed -n "s/^__version__ = '\(.*\)'/\1/p" "$SLIPWAY_TORCH/version.py")
  case "$version" in
    2.11.*) ;;
    *) echo "    note: PyTorch there is $version; Slipway is tested with 2.11.0" ;;
  esac
  echo "    PyTorch $version in $SLIPWAY_TORCH (SLIPWAY_TORCH)"
  exit 0
fi

# slipway-pins says that .venv is ours, and what was installed completely: nothing while an installation runs.
mark=.venv/slipway-pins
if [ -e .venv ] && [ ! -e "$mark" ]; then
  echo "setup/libtorch.sh: .venv/ is there, but was not made by this script. Move it away, or set SLIPWAY_TORCH to" >&2
  echo "the torch/ folder of an installed PyTorch 2.11." >&2
  exit 1
fi
if [ -e "$mark" ] && [ "$(cat "$mark")" = "$pins" ]; then
  echo "    PyTorch 2.11.0 is in .venv/"
  exit 0
fi

echo "    installing into .venv/ (1.3 GB): $pins"
rm -rf .venv
mkdir .venv
: >"$mark"
python3 -m venv .venv
.venv/bin/pip install --quiet --no-deps --no-compile $pins
echo "$pins" >"$mark"
