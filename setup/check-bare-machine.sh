#!/bin/sh
# check-bare-machine.sh FOLDER [TARGET...]: does `make TARGET` (default: test) set up everything itself? Needs root,
# debootstrap and about 6 GB in FOLDER, which becomes a minimal Debian 12 plus make, with a copy of this repository's
# HEAD in /slipway. It keeps FOLDER, so that a second call continues in the same machine; remove it to start bare.
# The machine's own package servers are used: its apt and pip configuration, proxies and certificates are copied.
set -eu

if [ $# -lt 1 ]; then
  sed -n '2,5s/^# //p' "$0" >&2
  exit 2
fi
[ "$(id -u)" -eq 0 ] || { echo "setup/check-bare-machine.sh: needs root" >&2; exit 2; }
command -v debootstrap >/dev/null || { echo "setup/check-bare-machine.sh: debootstrap is missing; apt-get install debootstrap" >&2; exit 2; }
source=$(cd "$(dirname "$0")/.." && pwd)
folder=$1
shift

copy() {  # copies what exists of a file or folder to the same place inside
  if [ -e "$1" ]; then
    mkdir -p "$folder$(dirname "$1")"
    cp -rL "$1" "$folder$(dirname "$1")/"
  fi
}

if [ ! -e "$folder/slipway" ]; then
  start=$(date +%s)
  debootstrap --variant=minbase --include=make bookworm "$folder" >"$folder.log" 2>&1
  rm -f "$folder/etc/apt/sources.list"
  for path in /etc/apt/sources.list /etc/apt/sources.list.d /etc/apt/apt.conf.d /etc/apt/auth.conf.d \
              /etc/apt/keyrings /etc/pip.conf /etc/resolv.conf /etc/hosts /usr/local/share/ca-certificates; do
    copy "$path"
  done
  echo "==> Debian 12, $(chroot "$folder" dpkg-query --list | grep -c ^ii) packages, took $(($(date +%s) - start)) s"
fi
rm -rf "$folder/slipway.new"
mkdir -p "$folder/slipway" "$folder/slipway.new"
git -C "$source" archive HEAD | tar -x -C "$folder/slipway.new"
cp -r "$folder/slipway.new/." "$folder/slipway/"
rm -rf "$folder/slipway.new"

mountpoint -q "$folder/proc" || mount --bind /proc "$folder/proc"
mountpoint -q "$folder/dev" || mount --bind /dev "$folder/dev"
trap 'umount "$folder/proc" "$folder/dev"' EXIT
start=$(date +%s)
# Only the settings of package clients come along: everything else is a fresh machine's.
env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 $(env | grep -E '^(PIP_|https?_proxy=|no_proxy=)') \
  chroot "$folder" make -C /slipway "${@:-test}"
echo "==> make ${*:-test} on a bare machine took $(($(date +%s) - start)) s"
