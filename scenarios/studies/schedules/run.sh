#!/bin/sh
# All schedules on one model, ranks and micro-batches, without and with clipping by the global norm: table (text and
# CSV) and picture (SVG). Writes to schedules-study/ of the build folder (BUILD, build/ if it is not set).
set -eu
cd "$(dirname "$0")/../../.."
build=${BUILD:-build}
out=$build/schedules-study
mkdir -p "$out"
"$build/slipway" study scenarios/studies/schedules/gpt-4x8.yaml \
  --vary schedule.name=gpipe,1f1b,interleaved-1f1b,1f1b-merged,looped-bfs,chimera,dualpipe,zb-h1,zb-h2,zb-v,v-min,v-half,dualpipe-v,terapipe \
  --vary run.clip_norm=0,1 --columns step_time_s,mfu,bubble_share,exposed_comm_share,needed_memory_bytes \
  --csv "$out/schedules.csv" --plot "$out/schedules.svg"
