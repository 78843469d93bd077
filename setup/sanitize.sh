#!/bin/sh
# sanitize.sh asan|tsan PART PARTS JOBS [CMAKE-OPTION...]: builds build-asan/ or build-tsan/ (CMakePresets.json) and runs
# the tests PART, PART + PARTS, PART + 2 PARTS, ... there. Any report of a sanitizer is a failure.
# What tests/sanitizers leaves out is of foreign libraries, which are not instrumented.
set -eu
cd "$(dirname "$0")/.."
if [ $# -lt 4 ]; then sed -n '2,4s/^# //p' "$0" >&2; exit 2; fi
preset=$1 part=$2 parts=$3 jobs=$4
shift 4
folder=build-$preset
setup/step.sh "Configuring $folder" cmake --preset "$preset" "$@"
setup/step.sh "Building $folder" cmake --build "$folder" --parallel "$jobs"
rules=$PWD/tests/sanitizers
# Few callers of an allocation: LibTorch has no frame pointers, so that each would look new, and tests of training got
# slower and slower. A report that needs more is seen again with malloc_context_size=30.
# Doubles of NVIDIA's libraries are loaded before all others (tests/cuda_double).
ASAN_OPTIONS="detect_stack_use_after_return=1:strict_string_checks=1:abort_on_error=0"
export ASAN_OPTIONS="$ASAN_OPTIONS:suppressions=$rules/addresses.txt:malloc_context_size=4:verify_asan_link_order=0"
export LSAN_OPTIONS="suppressions=$rules/leaks.txt:print_suppressions=0"
export UBSAN_OPTIONS="print_stacktrace=1"
# A rank that fails leaves without its threads, which may wait for a rank that hangs.
export TSAN_OPTIONS="suppressions=$rules/threads.txt:second_deadlock_stack=1:report_thread_leaks=0"
exec ctest --test-dir "$folder" -I "$part,,$parts" --parallel "$jobs" --output-on-failure --no-tests=error
