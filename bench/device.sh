#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Verifies and times the kernels on this machine's best Vulkan device, in parts that each end well
# within ten minutes. BIN names the folder of the built programs (default: build).
#   bench/device.sh [PART...]     parts: bits cases contract attention skeletons decode (default: all)
set -euo pipefail
BIN=${BIN:-build}
parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=(bits cases contract attention skeletons decode)
failed=0

need() {
  for program in "$@"; do
    [ -x "$BIN/$program" ] && continue
    [ -e "$BIN/build.ninja" ] || { echo "device.sh: $BIN/$program is not built" >&2; exit 1; }
    ninja -C "$BIN" "$program"
  done
}

for part in "${parts[@]}"; do
  echo "== $part"
  case $part in
    bits) # every instruction: device against interpreter, bit for bit
      need device_kernels_test
      timeout 300 "$BIN/device_kernels_test" || failed=1
      ;;
    cases) # every operator's cases against float64, and at exact the interpreter's bits
      need device_cases_test
      timeout 500 "$BIN/device_cases_test" --gtest_filter='DeviceCases.*' || failed=1
      ;;
    contract) # products and convolutions, checked against float64, beside hand-tuned figures
      need contract_bench
      timeout 500 "$BIN/contract_bench" || failed=1
      ;;
    attention)
      need attention_bench
      timeout 300 "$BIN/attention_bench" || failed=1
      ;;
    skeletons) # map, reduce, rows
      need skeleton_bench
      timeout 300 "$BIN/skeleton_bench" --check || failed=1
      timeout 300 "$BIN/skeleton_bench" || failed=1
      ;;
    decode) # token by token: counts, times, error against float64
      need decode_bench
      timeout 300 "$BIN/decode_bench" || failed=1
      ;;
    *)
      echo "device.sh: no part $part (bits, cases, contract, attention, skeletons, decode)" >&2
      exit 64
      ;;
  esac
done
exit $failed
