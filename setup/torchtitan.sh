#!/bin/sh
# torchtitan and its parser's packages in .venv-torchtitan/ (12 MB), for the test of `plan --emit torchtitan`. --no-deps:
# the parser needs neither PyTorch nor the rest (tests/torchtitan/parsed.py). The version is that which `plan` names.
set -eu
cd "$(dirname "$0")/.."

pins="torchtitan==0.3.0 tyro==1.0.17 docstring_parser==0.18.0 typeguard==4.6.1 typing_extensions==4.16.0"
mark=.venv-torchtitan/slipway-pins
if [ -e "$mark" ] && [ "$(cat "$mark")" = "$pins" ]; then
  echo "    torchtitan 0.3.0 is in .venv-torchtitan/"
  exit 0
fi
if [ -e .venv-torchtitan ] && [ ! -e "$mark" ]; then
  echo "setup/torchtitan.sh: .venv-torchtitan/ is there, but was not made by this script. Move it away." >&2
  exit 1
fi
echo "    installing into .venv-torchtitan/: $pins"
rm -rf .venv-torchtitan
mkdir .venv-torchtitan
: >"$mark"
python3 -m venv .venv-torchtitan
# Without a network the test is skipped, with its reason.
if ! .venv-torchtitan/bin/pip install --quiet --no-deps --no-compile $pins; then
  echo "    note: PyPI cannot be reached; the test of torchtitan's parser will be skipped"
  rm -rf .venv-torchtitan
  exit 0
fi
echo "$pins" >"$mark"
