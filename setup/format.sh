#!/bin/sh
# format.sh [--check]: writes every .h and .cpp as clang-format 14 does with .clang-format. With --check it changes nothing:
# it prints the lines that differ and exits with status 1, or with 77 (skipped) where clang-format 14 is not installed.
set -eu
cd "$(dirname "$0")/.."

check=false
case "$#,${1:-}" in
  0,) ;;
  1,--check) check=true ;;
  *) sed -n '2,3s/^# //p' "$0" >&2; exit 2 ;;
esac

# Other versions format the same file differently.
formatter=""
for name in clang-format-14 clang-format; do
  if "$name" --version 2>/dev/null | grep -q 'version 14\.'; then formatter=$name; break; fi
done
if [ -z "$formatter" ]; then
  echo "setup/format.sh: skipped: clang-format 14 is not on PATH (Debian 12: setup/debian.sh test)" >&2
  $check && exit 77
  exit 1
fi

# By find, not by git: a tarball has no repository, and a new file is not tracked yet.
each_file() {  # runs clang-format with these options on every source, on every core
  find . \( -path './build*' -o -path './.?*' \) -prune -o -type f \( -name '*.h' -o -name '*.cpp' \) -print0 |
    xargs -0 -n 40 -P "$(nproc)" "$formatter" --style=file "$@"
}
if ! $check; then
  each_file -i
elif ! each_file --dry-run --Werror; then
  echo "setup/format.sh: the lines above are not as clang-format 14 writes them; run make format" >&2
  exit 1
fi
