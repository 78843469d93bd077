#!/bin/sh
# debian.sh [test|package|fuzz|aarch64]: installs the Debian packages that are missing, and only those: what the programs are
# built with, with `test` also what tests, benchmarks and make format need, with `package`, `fuzz` or `aarch64` what make
# package, make fuzz or make check-aarch64 needs. Slipway is tested on Debian 12. The second word of a line is the upstream
# version there; another version is noted, not refused. Without a second word, any version will do.
set -eu

case "$#,${1:-}" in
  0, | 1,test | 1,package | 1,fuzz | 1,aarch64) ;;
  *) sed -n '2,5s/^# //p' "$0" >&2; exit 2 ;;
esac

packages="
g++ 4:12.2
cmake 3.25
ninja-build 1.11
pkg-config 1.8
ca-certificates 20
python3-venv 3.11
libsimgrid-dev 3.32
libboost-graph-dev 1.74
libboost-program-options-dev 1.74
libeigen3-dev 3.4
libyaml-cpp-dev 0.7
nlohmann-json3-dev 3.11
libfmt-dev 9.1
libtomlplusplus-dev 3.3
zlib1g-dev 1:1.2
libprotobuf-dev 3.21
protobuf-compiler 3.21
libgloo-dev 0.0
"
test_packages="
libgtest-dev 1.12
libgmock-dev 1.12
libbenchmark-dev 1.7
clang-format 1:14
universal-ctags 5.9
openmpi-bin 4.1
zsh 5.9
fish 3.6
groff-base 1.22
iproute2 6.1
nftables 1.0
locales 2.36
chromium
chromium-driver
"
package_packages="
python3-wheel 0.38
"
fuzz_packages="
clang-19 1:19
libclang-rt-19-dev 1:19
"
aarch64_packages="
g++-aarch64-linux-gnu 4:12.2
qemu-user-static 1:7.2
"
if [ "${1:-}" = aarch64 ]; then packages="$packages$aarch64_packages"; fi
if [ "${1:-}" = fuzz ]; then packages="$packages$fuzz_packages"; fi
if [ "${1:-}" = package ]; then packages="$packages$package_packages"; fi
if [ "${1:-}" = test ]; then packages="$packages$test_packages"; fi

# "1:3.32-2+b1" of an installed package; nothing when it is not installed.
installed_version() {
  dpkg-query --show --showformat '${db:Status-Abbrev} ${Version}' "$1" 2>/dev/null | sed -n 's/^ii *//p'
}

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "setup/debian.sh: this is not a Debian system. Install the equivalents of these packages yourself:" >&2
  echo "$packages" >&2
  echo "then run: cmake -S . -B build -G Ninja && cmake --build build" >&2
  exit 1
fi

missing=$(echo "$packages" | while read -r name version; do
  if [ -n "$name" ] && [ -z "$(installed_version "$name")" ]; then echo "$name"; fi
done)

if [ -n "$missing" ]; then
  echo "    installing:" $missing
  root=""
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
      echo "setup/debian.sh: packages are missing, and installing them needs root or sudo. As root, run:" >&2
      echo "  apt-get update && apt-get install --no-install-recommends" $missing >&2
      exit 1
    fi
    root="sudo"
  fi
  # An installation that was interrupted is finished first; two runs at once wait for each other.
  $root dpkg --configure -a
  $root apt-get -qq -o DPkg::Lock::Timeout=300 update
  $root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 \
    install --yes --no-install-recommends $missing >/dev/null
fi

echo "$packages" | while read -r name version; do
  [ -n "$name" ] || continue
  found=$(installed_version "$name")
  case "$found" in
    "$version"*) ;;
    *) echo "    note: $name is $found; Slipway is tested with $version" ;;
  esac
done
echo "    all Debian packages are there"
