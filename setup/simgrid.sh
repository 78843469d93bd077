#!/bin/sh
# simgrid.sh FOLDER [SYSROOT]: builds FOLDER/libsimgrid.so.3.32 and puts its source and licence files beside it; with SYSROOT
# (setup/aarch64.sh) for Linux on Arm. For make package and make check-aarch64.
# Debian's build of the same version links ns-3 and GSL, whose licence is the GPL. This one has neither, nor SMPI, bindings,
# Eigen and Boost libraries: Slipway uses none of them. It replaces Debian's library file without linking Slipway again.
# The source is Debian 12's own tar file, from the machine's package server, checked by its SHA-256.
# Debian's patches of 3.32-2 change documentation and Java only; they are not applied.
# Fused multiply-adds would give other bytes on Arm, and there its solver of shares has steps that never end with them.
set -eu
case "$#" in 1 | 2) ;; *) sed -n '2,8s/^# //p' "$0" >&2; exit 2 ;; esac
mkdir -p "$1"
folder=$(cd "$1" && pwd)
source=simgrid_3.32.orig.tar.xz
tree=$(cd "$(dirname "$0")" && pwd)
sysroot=
if [ $# -eq 2 ]; then sysroot=$(cd "$2" && pwd); fi
sum=4b413d8e9d9b29b8e086b2f3edaec5b1149d7eb52b2e134f1ed13d30891ece7b
# -g0 comes after SimGrid's own -g3. The build type is one of ours: as in Debian's build, -DNDEBUG is not set.
options="-DCMAKE_BUILD_TYPE=Package -DCMAKE_C_FLAGS_PACKAGE=-g0 -DCMAKE_CXX_FLAGS_PACKAGE=-g0 -DCMAKE_CXX_FLAGS=-ffp-contract=off
  -Denable_ns3=OFF -Denable_smpi=OFF -Denable_msg=OFF -Denable_java=OFF -Denable_python=OFF -Denable_fortran=OFF
  -Denable_documentation=OFF -Denable_lto=OFF -Dminimal-bindings=ON -DCMAKE_DISABLE_FIND_PACKAGE_Eigen3=ON"

if [ -n "$sysroot" ]; then options="$options --toolchain $tree/aarch64.cmake -DCMAKE_SYSROOT=$sysroot"; fi

# Written last: says what the folder was made from.
mark="$sum $options"
if [ -e "$folder/made-from" ] && [ "$(cat "$folder/made-from")" = "$mark" ]; then
  echo "    SimGrid 3.32 without ns-3 is in $1/"
  exit 0
fi
rm -f "$folder/made-from"

is_right() { [ -e "$folder/$source" ] && echo "$sum  $folder/$source" | sha256sum --check --status; }
if ! is_right; then
  # The source lies beside the binary package, whose address apt knows.
  package=$(apt-get download --print-uris libsimgrid3.32 | cut -d "'" -f 2)
  rm -f "$folder/$source"
  /usr/lib/apt/apt-helper -o APT::Sandbox::User=root download-file "$(dirname "$package")/$source" "$folder/$source" "SHA256:$sum"
  is_right || { echo "setup/simgrid.sh: $folder/$source has another SHA-256 than $sum; remove it and try again" >&2; exit 1; }
fi

rm -rf "$folder/source" "$folder/build"
mkdir "$folder/source"
tar -C "$folder/source" --strip-components 1 -xf "$folder/$source"
launcher=
if command -v ccache >/dev/null; then launcher="-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache"; fi
cd "$folder"  # SimGrid's configuration leaves a file where it runs
cmake -S source -B build -G Ninja $options $launcher >build.log 2>&1 &&
  cmake --build "$folder/build" --parallel "${JOBS:-$(nproc)}" --target simgrid >>"$folder/build.log" 2>&1 ||
  { tail -n 30 "$folder/build.log" >&2; echo "setup/simgrid.sh: SimGrid was not built; $folder/build.log has all messages" >&2; exit 1; }
cp -L "$folder/build/lib/libsimgrid.so.3.32" "$folder/libsimgrid.so.3.32"
cp "$folder/source/COPYING" "$folder/source/LICENSE-LGPL-2.1" "$folder/"
rm -rf "$folder/source" "$folder/build" "$folder/test_stackgrowth"
echo "$mark" >"$folder/made-from"
echo "    $1/libsimgrid.so.3.32 is there"
