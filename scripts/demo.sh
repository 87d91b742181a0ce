#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# demo.sh [PUMICE]: runs a trained network (is a line of text upright or upside down?) on two
# pictures, whole on a Vulkan device, and compares its outputs with float64 references.
# PUMICE: the command, by default build/pumice. PUMICE_DEVICE names another device than the best
# Vulkan one; PUMICE_MODELS is the folder with ppocr2-cls.onnx (`./dev path models`). Exit status 1
# where a verdict is wrong or an output is off.
set -euo pipefail
root=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
pumice=$(readlink -f "${1:-$root/build/pumice}")
cd "$root"

stop() {
  echo "demo: $*" >&2
  exit 1
}

model=${PUMICE_MODELS:-${PUMICE_CACHE:-${HOME:-/root}/.cache/pumice}/models}/ppocr2-cls.onnx
[ -x "$pumice" ] || stop "$pumice is not there; ./dev build makes it"
[ -e "$model" ] || stop "$model is not there; ./dev path models fetches it"
device=${PUMICE_DEVICE:-vulkan} # the best one; named, so that without Vulkan nothing else is taken
"$pumice" devices | grep "^$device" || true

results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
status=0
for line in line_upright line_turned; do
  data=examples/data/$line
  python3 scripts/demo_data.py input "$data.pgm" "$results/$line.npy"
  "$pumice" run "$model" --device "$device" --dim x.0=1 --dim x.2=48 --dim x.3=192 \
    --input "x=$results/$line.npy" --output "$results/$line"
  python3 scripts/demo_data.py judge "$data.pgm" "$data.json" "$results/$line"/*.npy || status=1
done
exit $status
