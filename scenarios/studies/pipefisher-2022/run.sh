#!/bin/sh
# The paper's study in one command: table (text and CSV) and picture (SVG). Writes to pipefisher-2022/ of the build
# folder (BUILD, build/ if it is not set). SCHEDULES names other schedules than those of the paper.
set -eu
cd "$(dirname "$0")/../../.."
build=${BUILD:-build}
out=$build/pipefisher-2022
here=scenarios/studies/pipefisher-2022
schedules=${SCHEDULES:-gpipe,1f1b,chimera}
columns=utilization_before,utilization,utilization_ceiling,utilization_own_cycles,refresh_steps
columns=$columns,step_time_s,sequences_per_s,peak_memory_bytes,closed_form_step_time_s,closed_form_memory_bytes
mkdir -p "$out"

printf 'One block per stage, D = N = 4, 8, 16, micro-batches of 32 (the setting of the authors'"'"' model)\n\n'
"$build/slipway" study $here/bert-base.yaml $here/bert-large.yaml --vary "schedule.name=$schedules" \
  --vary "layout.pipeline=4,8,16 model.layers=4,8,16 cluster.gpus_per_node=4,8,16 schedule.global_batch=128,256,512" \
  --columns $columns --csv "$out/one-block.csv" --plot "$out/one-block.svg"

printf '\nThe real models on four stages: 12 blocks (3 per stage) and 24 (6 per stage)\n\n'
"$build/slipway" study $here/bert-base.yaml $here/bert-large.yaml --vary "schedule.name=$schedules" \
  --columns $columns --csv "$out/whole-models.csv" --plot "$out/whole-models.svg"
