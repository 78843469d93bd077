#!/bin/sh
# package.sh: the rank program for other machines, as one tarball: BUILD/slipway-rank-VERSION-x86_64.tar.gz.
# It carries its own C and C++ library and their loader for nodes whose are older; PyTorch 2.11 and, for GPUs, a driver are
# the node's. SLIPWAY_TORCH: the torch/ folder that the program was linked with.
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build}
program=$build/slipway-rank
[ -x "$program" ] || { echo "setup/package.sh: $program is missing; run make first" >&2; exit 1; }

version=$("$program" --version | cut -d' ' -f2)
name=slipway-rank-$version-x86_64
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/slipway-rank
mkdir -p "$root/bin" "$root/lib"

programs=$program
[ -x "$program-cuda" ] && programs="$programs $program-cuda"
for each in $programs; do
  cp "$each" "$root/bin/"
  strip "$root/bin/$(basename "$each")"
  # libc with its parts and loader, libstdc++ and libgcc_s: what belongs to the system that built it.
  ldd "$each" | sed -n -e 's/.*=> \(\/[^ ]*\) .*/\1/p' -e 's/^[[:space:]]*\(\/[^ ]*ld-linux[^ ]*\) .*/\1/p' |
    grep -E '/(ld-linux-x86-64|libc|libm|libmvec|libdl|libpthread|librt|libutil|libresolv|libgcc_s|libstdc\+\+)\.so' |
    while read -r library; do cp -L "$library" "$root/lib/"; done
done
# The newest version of each library that a program asks for: "GLIBC 2.34".
for library in GLIBC GLIBCXX; do
  echo "$library $(objdump -T "$root"/bin/* | grep -o "(${library}_[0-9.]*)" | tr -d '()' | sed "s/${library}_//" | sort -V | tail -n 1)"
done >"$root/lib/needs"
cp setup/package/slipway-rank setup/package/README "$root/"
cp LICENSE "$root/"
chmod +x "$root/slipway-rank"
# The same bytes for the same programs.
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@0" -C "$work" -cf - slipway-rank | gzip -9n >"$work/package.tar.gz"
mv "$work/package.tar.gz" "$build/$name.tar.gz"
echo "$build/$name.tar.gz ($(du -h "$build/$name.tar.gz" | cut -f1))"
