#!/bin/sh
# aarch64.sh FOLDER: unpacks in FOLDER what a program for Linux on Arm is built against and run with: Debian's arm64 packages of
# the libraries that setup/debian.sh lists, and what they need. make check-aarch64 uses it.
# They come from the machine's package servers, by an apt with a state of its own: the machine's own packages
# and processors stay as they are, and no root is needed.
set -eu
case "$#" in 1) ;; *) sed -n '2,5s/^# //p' "$0" >&2; exit 2 ;; esac
mkdir -p "$1"
folder=$(cd "$1" && pwd)
# Headers and link files, without Gloo's: the rank program is not built.
packages="libc6-dev libstdc++-12-dev $(sed -n '/^packages="/,/^"/s/ .*//p' "$(dirname "$0")/debian.sh" | grep -e '-dev$' |
  grep -v gloo | tr '\n' ' ')"

# Written last: says what the folder was made from.
if [ -e "$folder/made-from" ] && [ "$(cat "$folder/made-from")" = "$packages" ]; then
  echo "    the packages are in $1/"
  exit 0
fi
if [ -e "$folder/made-from" ]; then rm -rf "$folder"; fi
if [ -n "$(ls -A "$folder" 2>/dev/null)" ]; then
  echo "setup/aarch64.sh: $1 has other files; give a folder that is empty or not there yet" >&2
  exit 1
fi
# All is made beside it, and removed where this is interrupted.
apt="$folder.new/apt" root="$folder.new/root"
rm -rf "$folder.new"
mkdir -p "$folder.new" "$root" "$apt/lists/partial" "$apt/archives/partial"
trap 'rm -rf "$folder.new"' EXIT
: >"$apt/status"  # Nothing is installed: all that the packages need is taken.
cat >"$apt/apt.conf" <<END
APT::Architecture "arm64";
#clear APT::Architectures;
APT::Architectures:: "arm64";
APT::Sandbox::User "";
Acquire::Languages "none";
Dir::State "$apt";
Dir::State::status "$apt/status";
Dir::State::lists "$apt/lists";
Dir::Cache "$apt";
Dir::Cache::archives "$apt/archives";
END
export APT_CONFIG="$apt/apt.conf"
apt-get -qq update
apt-get -qq install --yes --no-install-recommends --download-only $packages >"$apt/log" 2>&1 || {
  cat "$apt/log" >&2
  echo "setup/aarch64.sh: the packages were not found; the machine's package sources must be those of Debian 12, with arm64" >&2
  exit 1
}
for package in "$apt"/archives/*.deb; do dpkg-deb --extract "$package" "$root"; done
# A link to /etc/x is one to the sysroot's etc/x.
find "$root" -type l -lname '/*' | while read -r link; do ln -snfr "$root$(readlink "$link")" "$link"; done
echo "$packages" >"$root/made-from"
rm -rf "$folder"
mv "$root" "$folder"
echo "    $(ls "$apt/archives" | grep -c 'deb$') packages are unpacked in $1/"
