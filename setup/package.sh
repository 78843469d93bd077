#!/bin/sh
# package.sh [rank]: what runs on other x86-64 Linux machines without root, from the programs in BUILD (default: build).
#   BUILD/slipway-rank-VERSION-x86_64.tar.gz   the rank program, for nodes that have PyTorch 2.11
# and without `rank`, with the SimGrid of setup/simgrid.sh in BUILD/simgrid:
#   BUILD/slipway-VERSION-x86_64.tar.gz        slipway and the rank program
#   BUILD/slipway-VERSION-py3-none-manylinux_2_31_x86_64.whl   the same, for pip, with the Python module
# Each carries its own C and C++ library and their loader for nodes whose are older, and the licences of all that is in it
# (setup/package/licences). PyTorch and, for GPUs, a driver are the node's. The same programs give the same bytes.
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build}
part=${1:-all}
case "$#,$part" in 0,* | 1,rank) ;; *) sed -n '2,9s/^# //p' "$0" >&2; exit 2 ;; esac
fail() { echo "setup/package.sh: $1" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

runtime='/(ld-linux-x86-64|libc|libm|libmvec|libdl|libpthread|librt|libutil|libresolv|libgcc_s|libstdc\+\+)\.so'
# The libraries that a program loads, where this system has them: what $2, a pattern, allows. PyTorch's and NVIDIA's are
# the node's.
libraries_of() {
  missing=$(LD_LIBRARY_PATH=$build/simgrid ldd "$1" | grep -F 'not found' | grep -vE '^[[:space:]]*lib(torch|c10|cu|nv|nccl)' || true)
  [ -z "$missing" ] || fail "$1 asks for a library that is not here: $missing"
  LD_LIBRARY_PATH=$build/simgrid ldd "$1" |
    sed -n -e 's/.*=> \([^ ]*\/[^ ]*\) .*/\1/p' -e 's/^[[:space:]]*\(\/[^ ]*ld-linux[^ ]*\) .*/\1/p' | grep -E "$2"
}
put_libraries_of() {  # ROOT PROGRAM PATTERN
  libraries_of "$2" "$3" >"$work/needed"  # no pipe: it must end this script where it fails
  while read -r library; do cp -L "$library" "$1/lib/"; done <"$work/needed"
}
put_program() {  # ROOT PROGRAM PATTERN
  [ -x "$2" ] || fail "$2 is missing; run make first"
  mkdir -p "$1/bin" "$1/lib"
  cp "$2" "$1/bin/"
  strip "$1/bin/$(basename "$2")"
  put_libraries_of "$1" "$2" "$3"
}

# The newest version of each library that a rank program asks for: "GLIBC 2.34".
put_rank_program() {  # ROOT
  put_program "$1" "$build/slipway-rank" "$runtime"
  [ ! -x "$build/slipway-rank-cuda" ] || put_program "$1" "$build/slipway-rank-cuda" "$runtime"
  for library in GLIBC GLIBCXX; do
    echo "$library $(objdump -T "$1"/bin/slipway-rank* | grep -o "(${library}_[0-9.]*)" | tr -d '()' | sed "s/${library}_//" | sort -V | tail -n 1)"
  done >"$1/lib/needs"
  cp setup/package/slipway-rank setup/package/find-torch LICENSE "$1/"
  chmod +x "$1/slipway-rank" "$1/find-torch"
}

# The copyright file of each package of which something is in ROOT, what these refer to, and a table of all.
put_licences() {  # ROOT
  mkdir "$1/licences"
  grep -v '^#' setup/package/licences >"$work/licences"
  for library in "$1"/lib/*.so*; do
    case $library in */libslipway*) continue ;; esac  # ours: LICENSE
    awk -v file="$(basename "$library")" '$1 == file { known = 1 } END { exit !known }' "$work/licences" ||
      fail "the licence of $library is not known; add a row to setup/package/licences"
  done
  while read -r file package licence; do
    [ -e "$1/lib/$file" ] || { [ "${file#in:}" != "$file" ] && [ -e "$1/bin/${file#in:}" ]; } || continue
    cp -L "/usr/share/doc/$package/copyright" "$1/licences/$package" || fail "the package $package is not installed"
    echo "$file $package $licence $(dpkg-query -W -f '${source:Package} ${source:Version}' "$package")"
  done <"$work/licences" >"$work/table"
  awk 'BEGIN { form = "%-36s %-20s %-42s %-16s %s\n"; printf form, "file", "licences/", "licence", "source", "version" }
    { printf form, $1, $2, $3, $4, $5 }' "$work/table" >"$1/licences/TABLE"
  grep -hos '/usr/share/common-licenses/[A-Za-z0-9-]*[0-9]\(\.[0-9]\)*' "$1"/licences/* | sort -u |
    while read -r text; do cp -L "$text" "$1/licences/"; done
  torch=$(sed -n 's/^SLIPWAY_TORCH_FOLDER:[A-Z]*=//p' "$build/CMakeCache.txt")
  cp "$torch"/../torch-2.11.*.dist-info/licenses/LICENSE "$1/licences/PyTorch" 2>/dev/null ||
    echo "    note: $torch has no licence file, so none of PyTorch (BSD-3-Clause, headers only) is packed" >&2
  cp setup/package/LICENCES "$1/licences/README"
}

put_tarball() {  # ROOT NAME
  tar --sort=name --owner=0 --group=0 --numeric-owner --mode=u+w,go=rX --mtime="@0" -C "$(dirname "$1")" -cf - "$(basename "$1")" |
    gzip -9n >"$work/package.tar.gz"
  mv "$work/package.tar.gz" "$build/$2.tar.gz"
  echo "$build/$2.tar.gz ($(du -h "$build/$2.tar.gz" | cut -f1))"
}

# A wheel is its content, three files about it, and a zip archive that lists all; pip makes bin/slipway from the entry point.
put_wheel() {  # ROOT
  wheel=$work/wheel
  info=$wheel/slipway-$version.dist-info
  mkdir -p "$wheel/slipway" "$info/licenses"
  cp scenarios/python/slipway/*.py scenarios/python/slipway/py.typed "$wheel/slipway/"
  cp -r "$1" "$wheel/slipway/bundle"
  cp LICENSE "$info/licenses/"
  { sed "s/^Version: .*/Version: $version/" setup/package/METADATA && cat scenarios/python/README.md; } >"$info/METADATA"
  printf 'Wheel-Version: 1.0\nGenerator: slipway\nRoot-Is-Purelib: false\nTag: py3-none-manylinux_2_31_x86_64\n' >"$info/WHEEL"
  printf '[console_scripts]\nslipway = slipway.program:main\nslipway-rank = slipway.program:rank\n' >"$info/entry_points.txt"
  chmod -R u+w,go=rX "$wheel"
  # Debian's python3-wheel belongs to /usr/bin/python3; 1980 is the earliest date that zip knows.
  SOURCE_DATE_EPOCH=315532800 /usr/bin/python3 -m wheel pack --dest-dir "$work" "$wheel" >/dev/null
  mv "$work"/slipway-*.whl "$build/"
  wheel=$build/slipway-$version-py3-none-manylinux_2_31_x86_64.whl
  echo "$wheel ($(du -h "$wheel" | cut -f1))"
}

version=$("$build/slipway-rank" --version | cut -d' ' -f2) || fail "$build/slipway-rank does not start; run make first"
mkdir "$work/slipway-rank"
put_rank_program "$work/slipway-rank"
cp setup/package/README "$work/slipway-rank/"
put_licences "$work/slipway-rank"
put_tarball "$work/slipway-rank" "slipway-rank-$version-x86_64"
[ "$part" != rank ] || exit 0

root=$work/slipway-$version
mkdir "$root"
put_rank_program "$root"
put_program "$root" "$build/slipway" .
put_libraries_of "$root" "$build/libslipway-simgrid.so" .  # slipway loads it by name when it simulates first
cp "$build/libslipway-simgrid.so" "$root/lib/"
strip --strip-unneeded "$root"/lib/libslipway*.so*
cmp -s "$root/lib/libsimgrid.so.3.32" "$build/simgrid/libsimgrid.so.3.32" ||
  fail "$build/simgrid holds no SimGrid of our own; run setup/simgrid.sh $build/simgrid"
strip --strip-unneeded "$root/lib/libsimgrid.so.3.32"
# `slipway execute` decides by this name that ranks compute on GPUs.
if [ -x "$root/bin/slipway-rank-cuda" ]; then
  printf '#!/bin/sh\nexec "$(dirname "$(readlink -f "$0")")/slipway-rank" "$@"\n' >"$root/slipway-rank-cuda"
  chmod +x "$root/slipway-rank-cuda"
fi
cp setup/package/slipway "$root/"
chmod +x "$root/slipway"
cp setup/package/README.slipway "$root/README"
mkdir -p "$root/scenarios"
cp -r scenarios/examples scenarios/data "$root/scenarios/"
# The converters of published tables, and what they read: the names of models, machines and trainers.
for file in scenarios/studies/published_runs.py scenarios/studies/*/convert.py models/model/library/*.yaml \
  models/machine/profiles/*.yaml models/trainers/*.yaml; do
  mkdir -p "$root/$(dirname "$file")"
  cp "$file" "$root/$file"
done
put_licences "$root"
cp "$build/simgrid/COPYING" "$root/licences/libsimgrid3.32"
cp "$build/simgrid/LICENSE-LGPL-2.1" setup/simgrid.sh "$root/licences/"
cp scenarios/report/page/uplot/LICENSE "$root/licences/uPlot"
cp scenarios/commands/export/chakra/LICENSE "$root/licences/Chakra"
put_tarball "$root" "slipway-$version-x86_64"
put_wheel "$root"
