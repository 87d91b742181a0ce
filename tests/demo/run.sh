#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run.sh PUMICE: the demonstration as a test, and that its judge says no to a wrong verdict, to an
# output that is off, to a NaN and to a wrong shape. Exit status 77: skipped.
set -euo pipefail
root=$(dirname "$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")")
cd "$root"
pumice=$1

if [ ! -e "${PUMICE_TEST_MODELS:-/nowhere}/ppocr2-cls.onnx" ]; then
  echo "skipped: needs ppocr2-cls.onnx in PUMICE_TEST_MODELS (./dev path models)"
  exit 77
fi
printed=$(PUMICE_MODELS=$PUMICE_TEST_MODELS scripts/demo.sh "$pumice")
echo "$printed"
grep -q '^line_upright.pgm: 0 degrees' <<<"$printed"
grep -q '^line_turned.pgm: 180 degrees' <<<"$printed"

# The judge, on outputs made up here.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 - "$work" <<'PYTHON'
import json
import sys

sys.path.insert(0, "scripts")
import demo_data

wanted = json.load(open("examples/data/line_upright.json"))["output"]
demo_data.write_npy(f"{sys.argv[1]}/same.npy", wanted, (1, 2))
demo_data.write_npy(f"{sys.argv[1]}/off.npy", [wanted[0] - 2e-5, wanted[1]], (1, 2))
demo_data.write_npy(f"{sys.argv[1]}/nan.npy", [wanted[0], float("nan")], (1, 2))
demo_data.write_npy(f"{sys.argv[1]}/shape.npy", wanted, (2, 1))
PYTHON

judge() { # JSON NPY: prints what the judge says
  python3 scripts/demo_data.py judge examples/data/line_upright.pgm "examples/data/$1.json" "$work/$2.npy" 2>&1
}
refused() { # TEXT JSON NPY
  local said
  if said=$(judge "$2" "$3"); then echo "$3 against $2 was taken: $said" && exit 1; fi
  grep -qF "$1" <<<"$said" || { echo "$3 against $2: wanted \"$1\", it said: $said" && exit 1; }
}
judge line_upright same
refused "turned by 180 degrees, the network says 0" line_turned same
refused "the difference is above 1e-05" line_upright off
refused "the difference is above 1e-05" line_upright nan
refused "has shape (2, 1)" line_upright shape
