#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Verifies and times the kernels on this machine's best Vulkan device, in parts that each end well
# within ten minutes. BIN names the folder of the built programs (default: build).
#   bench/device.sh [PART...]     parts: bits cases contract attention skeletons decode models
#                                 contracts accuracy (default: all)
# The last three make the weights of bench/zoo's models in FOLDER (default: build/zoo; python3 with onnx),
# accuracy needs torch and torchvision too.
set -euo pipefail
BIN=${BIN:-build}
parts=("$@")
all=(bits cases contract attention skeletons decode models contracts accuracy)
[ ${#parts[@]} -gt 0 ] || parts=("${all[@]}")
FOLDER=${FOLDER:-build/zoo}
models=(vit_b resnet50 mobilenetv2)
failed=0

make_models() {
  local model
  for model in "${models[@]}"; do
    [ -e "$FOLDER/$model/weights.bin" ] && continue
    mkdir -p "$FOLDER/$model"
    python3 -c 'import lzma, sys; sys.stdout.buffer.write(lzma.open(sys.argv[1]).read())' \
      "bench/zoo/graphs/$model.onnx.xz" >"$FOLDER/$model/model.onnx"
    python3 bench/zoo/weights.py "$FOLDER/$model"
  done
}

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
    models) # whole models: load with an empty cache and again, replay
      need pumice
      make_models
      for model in "${models[@]}"; do
        for precision in f32 f16; do
          echo "$model $precision"
          cold=$(mktemp -d)
          PUMICE_CACHE=$cold __GL_SHADER_DISK_CACHE=0 "$BIN/pumice" run "$FOLDER/$model/model.onnx" \
            --precision $precision --repeat 2 | grep loaded || failed=1
          PUMICE_CACHE=$cold "$BIN/pumice" run "$FOLDER/$model/model.onnx" --precision $precision \
            --repeat 500 || failed=1
          rm -rf "$cold"
        done
      done
      ;;
    contracts) # each product, convolution and attention of whole models
      need pumice
      make_models
      for model in "${models[@]}"; do
        for precision in f32 f16; do
          echo "$model $precision"
          "$BIN/pumice" verify --contracts "$FOLDER/$model/model.onnx" --precision $precision |
            grep -v '^holds' || failed=1
        done
      done
      ;;
    accuracy) # outputs of whole models against float64, beside torch
      need pumice
      make_models
      timeout 500 python3 bench/accuracy.py --pumice "$BIN/pumice" "${models[@]/#/$FOLDER/}" || failed=1
      ;;
    *)
      echo "device.sh: no part $part (${all[*]})" >&2
      exit 64
      ;;
  esac
done
exit $failed
