# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: Apache-2.0
# doctor.sh: the text of `./dev doctor`. ./dev reads it in, so that it names the same packages and
# folders; nothing is changed and nothing is fetched.

doctor() {
  missing_something=no
  doctor_system
  doctor_packages
  doctor_vulkan
  doctor_data
  [ $missing_something = no ]
}

found() { printf '  %-22s %s\n' "$1" "$2"; }
absent() {
  printf '  %-22s MISSING: %s\n' "$1" "$2"
  missing_something=yes
}

doctor_system() {
  local tool system
  # shellcheck source=/dev/null
  [ ! -r /etc/os-release ] || system=$(. /etc/os-release; echo "${PRETTY_NAME:-}")
  echo "system"
  found system "${system:-unknown} on $(uname -m), $(jobs_here) processors"
  found memory "$(awk '/^MemTotal/ {printf "%.1f GiB", $2 / 1048576}' /proc/meminfo)"
  for tool in g++ clang++-14 cmake ninja ccache mold python3 git; do
    have "$tool" || continue
    found "$tool" "$("$tool" --version 2>/dev/null | head -n1)"
  done
}

doctor_packages() {
  local group
  local -a missing
  echo "packages"
  have dpkg-query || { absent packages "there is no dpkg; pumice is developed on Debian 12"; return; }
  for group in build test check; do
    mapfile -t missing < <(missing_packages "$group")
    if [ ${#missing[@]} -eq 0 ]; then
      found "for $group" whole
    else
      absent "for $group" "as root: apt-get install ${missing[*]}"
    fi
  done
}

doctor_vulkan() {
  local file library found_one=no
  echo "Vulkan"
  library=$(ldconfig -p 2>/dev/null | sed -n 's/.*libvulkan\.so\.1 .*=> //p' | head -n1)
  if [ -n "$library" ]; then found loader "$library"; else
    absent loader "as root: apt-get install libvulkan1 (drivers are then opened directly)"; fi
  for file in /etc/vulkan/icd.d/*.json /usr/share/vulkan/icd.d/*.json; do
    [ -e "$file" ] || continue
    found driver "$(sed -n 's/.*"library_path" *: *"\([^"]*\)".*/\1/p' "$file") ($file)"
    found_one=yes
  done
  [ $found_one = yes ] || absent driver "as root: apt-get install mesa-vulkan-drivers (a software device)"
  if have nvidia-smi; then
    found GPU "$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>&1 | head -n4)"
  elif ls /dev/dri/renderD* >/dev/null 2>&1; then
    found GPU "$(echo /dev/dri/renderD*)"
  else
    found GPU "none is visible: the software device is used"
  fi
  if [ -x build/pumice ]; then
    build/pumice devices 2>&1 | sed 's/^/  /' || absent devices "build/pumice devices failed"
  fi
}

doctor_data() {
  local folder
  echo "fetched data in $cache"
  folder=$(prefix_folder)
  if [ -e "$folder/stamp" ]; then
    found prefix "$folder, packages of Debian $(sed -n 's/^release //p' "$folder/stamp")"
    if [ -d "$folder/native" ]; then found "software device" whole; else
      absent "software device" "it could not be made loadable here; tests that need it are skipped"; fi
  else
    absent prefix "./dev path prefix"
  fi
  if [ -e "$cache/models/ppocr2-cls.onnx" ]; then found models "$cache/models"; else
    absent models "./dev path models"; fi
  if [ -e "$(python_folder)/whole" ]; then found python "$(python_folder)"; else
    absent python "./dev path python"; fi
}
