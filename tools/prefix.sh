#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# prefix.sh DIR: fills DIR with what tests need and Debian 12 does not have, taken from a newer
# Debian, without touching the system:
#   include/   Vulkan and SPIR-V headers          bin/      spirv-val, spirv-dis, spirv-as, vulkaninfo
#   native/    software Vulkan (lavapipe) with matrix units, loader and validation layer, made
#              loadable by this system's programs (nativize.py)
#   onnx/      the operator test cases of ONNX    debian/   the packages as unpacked
# The caller holds a lock. Idempotent: a stamp names the recipe that filled DIR. PUMICE_SUITES names
# other Debian releases to take the packages from. Exit status: 0 whole, 1 not to be had, 3 whole
# but for native/ (tests that need it are skipped).
set -euo pipefail
export LC_ALL=C
tools=$(cd "$(dirname "$0")" && pwd)
dir=$(realpath -m "${1:?usage: prefix.sh DIR}")
work=$dir/.work

say() { echo "prefix: $*"; }
stop() { echo "prefix: $*" >&2; exit 1; }

# A newer release moves, so nothing can be pinned: these are the oldest versions that do.
minimum() {
  case $1 in
    mesa-vulkan-drivers) echo 26.0 ;;  # matrices on the software device
    vulkan-validationlayers | libvulkan-dev) echo 1.4.300 ;;
    spirv-tools) echo 2025.1~ ;;  # knows matrices; bfloat16 from 2025.3 on
    *) echo 0 ;;
  esac
}
with_dependencies="mesa-vulkan-drivers libvulkan1 vulkan-validationlayers spirv-tools vulkan-tools patchelf"
single="libvulkan-dev spirv-headers libonnx-testdata"

# The package server that this machine's apt already uses, for the release it runs.
find_mirror() {
  local code
  # shellcheck source=/dev/null
  code=$(. /etc/os-release && echo "$VERSION_CODENAME")
  apt-get update --print-uris 2>/dev/null |
    sed -nE "s#^'([^']+)/dists/$code/InRelease'.*#\\1#p" | head -n1
}

# apt with a state of its own. An empty status file makes it fetch the whole closure, libc included;
# the settings stand on the command line because files of apt.conf.d win over APT_CONFIG. A server
# may hold a frozen state of a moving release, so only the signature is checked, not its age.
own_apt() {
  local program=$1
  shift
  "$program" -q -o Dir::State="$work" -o Dir::State::status="$work/status" \
    -o Dir::Cache="$work/cache" -o Dir::Etc::SourceList="$work/sources.list" \
    -o Dir::Etc::SourceParts="$work/empty" -o Dir::Etc::Preferences="$work/empty/none" \
    -o Dir::Etc::PreferencesParts="$work/empty" -o APT::Install-Recommends=false \
    -o APT::Default-Release="$suite" -o APT::Sandbox::User=root -o Acquire::Languages=none \
    -o Acquire::Retries=3 -o Acquire::http::Timeout=30 -o Acquire::https::Timeout=30 \
    -o Acquire::Check-Valid-Until=false -o Debug::NoLocking=true "$@"
}

fetch() {  # the releases, the last one preferred
  local arch options release mirror
  rm -rf "$work"
  mkdir -p "$work"/{empty,single,lists/partial,cache/archives/partial}
  : >"$work/status"
  mirror=$(find_mirror)
  [ -n "$mirror" ] || { echo "apt names no package server for this release" >"$work/log"; return 1; }
  arch=$(dpkg --print-architecture)
  options="arch=$arch"
  [ ! -r /usr/share/keyrings/debian-archive-keyring.gpg ] ||
    options+=" signed-by=/usr/share/keyrings/debian-archive-keyring.gpg"
  for release in "$@"; do echo "deb [$options] $mirror $release main"; done >"$work/sources.list"
  suite=${*: -1}
  own_apt apt-get update >"$work/log" 2>&1 || return 1
  # A release that cannot be reached is only a warning to apt-get update.
  ! grep -q '^[WE]: Failed to fetch' "$work/log" || return 1
  # shellcheck disable=SC2086  # lists of words
  own_apt apt-get install -y --download-only $with_dependencies >>"$work/log" 2>&1 || return 1
  # shellcheck disable=SC2086
  (cd "$work/single" && own_apt apt-get download $single) >>"$work/log" 2>&1
}

reason() {  # the first line of the log that says what went wrong, without the server's name
  { grep -m1 -E '^E:|[Cc]ould not|[Ff]ailure|is needed' "$work/log" || tail -n1 "$work/log"; } |
    sed -E "s#[a-z+]+://[^ ]*#(the server)#g; s#'[^']*'#(the server)#g"
}

version_of() {  # PACKAGE, from the name of the fetched file, without the epoch
  local file
  file=$(find "$work/cache/archives" "$work/single" -name "$1_*.deb" | head -n1)
  file=${file##*/"$1"_}
  echo "${file%_*}" | sed -E 's/^[0-9]+%3a//'
}

check_versions() {
  local package have
  for package in $with_dependencies $single; do
    have=$(version_of "$package")
    dpkg --compare-versions "${have:-0}" ge "$(minimum "$package")" || {
      echo "$package is $have, but $(minimum "$package") or newer is needed" >"$work/log"
      return 1
    }
  done
}

unpack() {
  local deb
  rm -rf "${dir:?}"/{debian,include,bin,native,onnx}
  mkdir -p "$dir"/{debian,include,bin}
  for deb in "$work"/cache/archives/*.deb; do  # of the drivers, only the software device
    dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$dir/debian" --exclude='./usr/share/doc*' \
      --exclude='./usr/share/man*' --exclude='./usr/share/i18n*' --exclude='./usr/share/X11*' \
      --exclude='./etc/*' --exclude='*/gconv*' --exclude='*/implicit_layer.d*' \
      --exclude='*/libvulkan_[!l]*.so' --exclude='*/icd.d/[!l]*'
  done
  for deb in "$work"/single/{libvulkan-dev,spirv-headers}_*.deb; do dpkg-deb -x "$deb" "$work/dev"; done
  mv "$work"/dev/usr/include/* "$dir/include/"
  dpkg-deb -x "$work"/single/libonnx-testdata_*.deb "$work/testdata"
  mv "$(find "$work/testdata" -type d -name node | head -n1 | xargs dirname)" "$dir/onnx"
}

# Tools run by the newer Debian's own dynamic loader: no file is changed for them.
wrap_tools() {
  local loader tool
  libraries=$(dirname "$(find "$dir/debian/usr/lib" -name libvulkan_lvp.so | head -n1)")
  loader=$(find "$libraries" -name 'ld-linux*.so.*' | head -n1)
  for tool in spirv-val spirv-dis spirv-as spirv-opt vulkaninfo patchelf; do
    printf '#!/bin/sh\nexec %q --library-path %q %q "$@"\n' "$loader" "$libraries" \
      "$dir/debian/usr/bin/$tool" >"$dir/bin/$tool"
    chmod +x "$dir/bin/$tool"
  done
}

with_absolute_library() {  # FOLDER FROM TO: the manifest FROM, its library in FOLDER
  sed -E "s#(\"library_path\" *: *\")([^\"]*/)?([^\"/]+\")#\\1$1/\\3#" "$2" >"$3"
}

make_native() {
  local share=$dir/debian/usr/share/vulkan
  python3 "$tools/nativize.py" "$libraries" "$dir/native" "$dir/bin/patchelf" >"$work/native.log" 2>&1 ||
    return 1
  mkdir -p "$dir/native/layers"
  with_absolute_library "$dir/native" "$(find "$share/icd.d" -name 'lvp_icd*.json' | head -n1)" \
    "$dir/native/lavapipe.json"
  with_absolute_library "$dir/native" "$share/explicit_layer.d/VkLayer_khronos_validation.json" \
    "$dir/native/layers/validation.json"
}

device_name() {  # what vulkaninfo finds with the unpacked driver
  with_absolute_library "$libraries" \
    "$(find "$dir/debian/usr/share/vulkan/icd.d" -name 'lvp_icd*.json' | head -n1)" "$work/icd.json"
  VK_DRIVER_FILES="$work/icd.json" VK_LOADER_LAYERS_DISABLE='~all~' XDG_RUNTIME_DIR="$work" \
    "$dir/bin/vulkaninfo" --summary 2>/dev/null | sed -n 's/.*driverInfo *= //p' | head -n1
}

stamp="$dir $(cat "$0" "$tools/nativize.py" | sha256sum | cut -c1-16)"
if [ "$(head -n1 "$dir/stamp" 2>/dev/null)" = "$stamp" ]; then
  [ -d "$dir/native" ] || exit 3
  exit 0
fi
mkdir -p "$dir"
rm -f "$dir/stamp"
trap 'rm -rf "$work"' EXIT

releases=("${PUMICE_SUITES:-}")
[ -n "${releases[0]}" ] || releases=(forky "trixie trixie-backports")  # the second is the reserve
for release in "${releases[@]}"; do
  say "fetching packages of Debian $release (about 90 MB)"
  # shellcheck disable=SC2086
  if fetch $release && check_versions; then break; fi
  say "not from Debian $release: $(reason | sed "s,^ *,,")"
  release=""
done
[ -n "$release" ] || stop "the newer Debian packages could not be fetched; check the network and" \
  "run this again, or name a Debian release to take them from in PUMICE_SUITES"
say "unpacking $(find "$work" -name '*.deb' | wc -l) packages"
unpack
wrap_tools
device=$(device_name)
[ -n "$device" ] || stop "the software Vulkan device of Debian $release does not start"
say "making the software device loadable by this system's programs"
status=0
if ! make_native; then
  say "that failed ($(tail -n1 "$work/native.log" | cut -c1-200)); tests that need it are skipped"
  rm -rf "$dir/native"
  status=3
fi
{
  echo "$stamp"
  echo "release $release"
  for package in $with_dependencies $single; do echo "$package $(version_of "$package")"; done
} >"$dir/stamp"
say "whole: $device, $(find "$dir/onnx/node" -mindepth 1 -maxdepth 1 | wc -l) ONNX node cases," \
  "$(du -sm "$dir" | cut -f1) MB"
exit $status
