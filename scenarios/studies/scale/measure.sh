#!/bin/sh
# Measures what the table of README.md says, on this machine: wall time, processor time and the memory of all
# processes of a command together (their proportional shares, sampled, less and less often: asking stops them).
#
#   sh scenarios/studies/scale/measure.sh build/slipway
set -eu
slipway=${1:-build/slipway}
here=$(dirname "$0")

shares_of() {  # kB of a process and all below it
  total=$(awk '/^Pss:/ {print $2}' "/proc/$1/smaps_rollup" 2>/dev/null || true)
  for child in $(cat "/proc/$1/task/$1/children" 2>/dev/null || true); do
    total=$((${total:-0} + $(shares_of "$child")))
  done
  echo "${total:-0}"
}

measure() {
  name=$1
  shift
  times=$(mktemp)
  /usr/bin/time -f '%e %U %S' -o "$times" "$slipway" simulate "$@" > /dev/null 2>&1 &
  peak=0 pause=0.05
  while kill -0 $! 2>/dev/null; do
    now=$(shares_of $!)
    [ "$now" -gt "$peak" ] && peak=$now
    sleep "$pause"
    pause=$(awk -v p="$pause" 'BEGIN {print p < 2 ? p * 1.5 : p}')
  done
  wait $!
  awk -v name="$name" -v peak="$peak" \
    '{printf "| %s | %.2f s | %.2f s | %.2f GB |\n", name, $1, $2 + $3, peak / 1e6}' "$times"
  rm -f "$times"
}

echo "$(date -u +%F), $(nproc) cores, $(awk -F': ' '/^model name/ {print $2; exit}' /proc/cpuinfo), load $(cut -d' ' -f1 /proc/loadavg)"
echo "| command | wall | processor | memory |"
echo "|---|---|---|---|"
measure "llama-8b" "$here/llama-8b-64xh100.yaml"
measure "llama-8b --exact" "$here/llama-8b-64xh100.yaml" --exact
measure "llama-8b, 10,240 micro-batches" "$here/llama-8b-64xh100.yaml" --set schedule.global_batch=20480
measure "gpt3-175b" "$here/gpt3-175b-1024xa100.yaml"
measure "gpt3-175b --all-ranks" "$here/gpt3-175b-1024xa100.yaml" --all-ranks
measure "gpt3-175b --all-ranks --whole" "$here/gpt3-175b-1024xa100.yaml" --all-ranks --whole
measure "gpt3-175b --exact" "$here/gpt3-175b-1024xa100.yaml" --exact
measure "llama-405b" "$here/llama-405b-131072xh100.yaml"
