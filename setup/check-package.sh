#!/bin/sh
# check-package.sh FOLDER [SUITE...]: do the tarball and the wheel of `make package` in BUILD (default: build) run in bare
# Debian systems (default: bullseye bookworm trixie), as a user without root? Needs root, debootstrap and 1 GB per system in
# FOLDER, which keeps them for a second call. The machine's own package servers are used.
# In each: the answers are the bytes of BUILD/slipway, no library of the system is loaded, execute says in one error that
# PyTorch is missing and trains where it is there (the PyTorch of the build, as hard links where they can be made).
# Then Python and pip are installed: the wheel installs and simulates in less than 60 s, and its module passes its tests.
set -eu
if [ $# -lt 1 ]; then
  sed -n '2,8s/^# //p' "$0" >&2
  exit 2
fi
[ "$(id -u)" -eq 0 ] || { echo "setup/check-package.sh: needs root" >&2; exit 2; }
command -v debootstrap >/dev/null || { echo "setup/check-package.sh: debootstrap is missing; apt-get install debootstrap" >&2; exit 2; }
source=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "${BUILD:-build}" && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- bullseye bookworm trixie
version=$("$build/slipway" --version | cut -d' ' -f2)
tarball=$build/slipway-$version-x86_64.tar.gz
wheel=$build/slipway-$version-py3-none-manylinux_2_31_x86_64.whl
torch=$(sed -n 's/^SLIPWAY_TORCH_FOLDER:[A-Z]*=//p' "$build/CMakeCache.txt")
for file in "$tarball" "$wheel"; do
  [ -e "$file" ] || { echo "setup/check-package.sh: $file is missing; run make package first" >&2; exit 1; }
done

fail() { echo "==> $suite: $1" >&2; exit 1; }
# The mounts end with the process.
inside() {  # CHROOT-OPTIONS COMMAND...
  env -i PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME="${home:-/}" LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
    $(env | grep -E '^(https?_proxy|no_proxy)=') unshare --mount sh -euc 'root=$1; shift; mount --bind /proc "$root/proc"
      mount --bind /dev "$root/dev"; exec chroot "$@"' sh "$root" "$@"
}
user() { home=/user inside --userspec=1000:1000 "$root" sh -euc "cd && $1"; }

make_root() {
  [ ! -e "$root/made" ] || return 0
  rm -rf "$root"
  debootstrap --variant=minbase "$suite" "$root" >"$root.log" 2>&1 || fail "debootstrap failed; see $root.log"
  for path in /etc/apt/apt.conf.d /etc/resolv.conf /etc/hosts; do
    [ ! -e "$path" ] || { mkdir -p "$root$(dirname "$path")" && cp -rL "$path" "$root$(dirname "$path")/"; }
  done
  touch "$root/made"
}

# What another system needs of an installed PyTorch.
put_torch() {
  [ ! -e "$root/torch/lib/libtorch_cpu.so" ] || return 0
  mkdir -p "$root/torch/lib" "$root/nvidia"
  cp "$torch/version.py" "$root/torch/"
  for library in libtorch_cpu.so libc10.so; do cp -l "$torch/lib/$library" "$root/torch/lib/" 2>/dev/null || cp "$torch/lib/$library" "$root/torch/lib/"; done
  cp "$torch"/lib/libgomp*.so* "$root/torch/lib/"
  mkdir -p "$root/nvidia/cu13/lib"
  cp -L "$torch"/../nvidia/cu13/lib/libcupti.so.13 "$torch"/../nvidia/cu13/lib/libcudart.so.13 "$root/nvidia/cu13/lib/"
}

check_tarball() {
  rm -rf "$root/user"
  mkdir "$root/user"
  tar -C "$root/user" -xzf "$tarball"
  mv "$root/user/slipway-$version" "$root/user/slipway"
  chown -R 1000:1000 "$root/user"
  start=$(date +%s)
  # But for the time that the simulation took and the folder of the scenario.
  answers='sed -e s/"simulate_wall_s":.*// -e s#"/.*/scenarios/#"scenarios/#'
  for scenario in llama-8b-64xh100 llama-70b-1024xh100 mixtral-8x7b-64xh100 llama-8b-h100-and-a100 tiny-llama-cpu; do
    (cd "$source" && "$build/slipway" simulate "scenarios/examples/$scenario.yaml" --json) | $answers >"$folder/expected"
    user "slipway/slipway simulate slipway/scenarios/examples/$scenario.yaml --json" | $answers >"$folder/answer"
    grep -q '"step_time_s"' "$folder/answer" || fail "there is no answer to $scenario"
    cmp "$folder/expected" "$folder/answer" || fail "the answer to $scenario differs from that of $build/slipway"
  done
  user "slipway/lib/ld-linux-x86-64.so.2 --library-path slipway/lib --list slipway/bin/slipway" >"$folder/libraries"
  if grep '=>' "$folder/libraries" | grep -v '=> slipway/lib/' >&2; then fail "these libraries come from the system"; fi
  status=0
  user "slipway/slipway execute slipway/scenarios/examples/tiny-llama-cpu.yaml" >"$folder/said" 2>"$folder/error" || status=$?
  [ "$status" -eq 1 ] && [ "$(grep -c . "$folder/error")" -eq 1 ] && grep -q 'pip install torch==2.11.0' "$folder/error" &&
    [ ! -e "$root/user/tiny-llama-cpu.run" ] || { cat "$folder/error" >&2; fail "execute without PyTorch gave no single error"; }
  user "SLIPWAY_TORCH=/torch SLIPWAY_DEVICE=cpu timeout 300 slipway/slipway execute slipway/scenarios/examples/tiny-llama-cpu.yaml --set run.steps=3" \
    >"$folder/said" 2>&1 || { cat "$folder/said" >&2; fail "execute with PyTorch failed"; }
  echo "    tarball: same answers, own libraries, one error without PyTorch, trains with it ($(($(date +%s) - start)) s)"
}

check_wheel() {
  if [ ! -e "$root/with-python" ]; then
    inside "$root" sh -euc 'apt-get -qq update && apt-get -qq install --yes --no-install-recommends python3-pip python3-venv >/dev/null' \
      >"$root.log" 2>&1 || fail "Python was not installed; see $root.log"
    touch "$root/with-python"
  fi
  cp "$wheel" "$source"/tests/python/*_test.py "$source"/docs/python.* "$root/user/"
  start=$(date +%s)
  user "python3 -m venv v && v/bin/pip install --quiet --no-index $(basename "$wheel") &&
    v/bin/slipway simulate slipway/scenarios/examples/llama-8b-64xh100.yaml" >"$folder/said" 2>&1 || { cat "$folder/said" >&2; fail "the wheel failed"; }
  took=$(($(date +%s) - start))
  [ "$took" -lt 60 ] || fail "pip install and simulate took $took s; allowed: less than 60"
  user "EXAMPLES=/user/slipway/scenarios/examples DOCUMENTS=/user v/bin/python -m unittest discover -p '*_test.py'" >"$folder/said" 2>&1 ||
    { cat "$folder/said" >&2; fail "the Python module failed its tests"; }
  echo "    wheel: pip $(user 'v/bin/pip --version' | cut -d' ' -f2), install and simulate in $took s, module $(grep -E '^Ran ' "$folder/said")"
}

for suite in "$@"; do
  root=$folder/$suite
  make_root
  echo "==> Debian $(cat "$root/etc/debian_version") with glibc $(inside "$root" getconf GNU_LIBC_VERSION | cut -d' ' -f2)"
  put_torch
  check_tarball
  check_wheel
done
echo "==> the package runs in bare $*"
