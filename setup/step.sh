#!/bin/sh
# step.sh TITLE COMMAND...: says what is done now, does it, and says how long it took.
title=$1
shift
echo "==> $title"
start=$(date +%s)
"$@"
status=$?
seconds=$(($(date +%s) - start))
if [ $status -ne 0 ]; then
  echo "==> $title: failed with status $status after $seconds s" >&2
  exit $status
fi
echo "    took $seconds s"
