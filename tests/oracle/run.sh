#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# run.sh units|models [PUMICE]: the oracle's own tests; or whole models through the command PUMICE
# beside the oracle. Exit status 77: skipped.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
python=${PUMICE_TEST_PYTHON:-}
if [ -z "$python" ] || ! "$python" -c 'import numpy, onnx' 2>/dev/null; then
  echo "skipped: needs PUMICE_TEST_PYTHON, a Python with onnx and numpy (./dev path python)"
  exit 77
fi
case ${1:-} in
  units) exec "$python" -B -m unittest discover -s "$here" ;;
  models) exec "$python" -B "$here/models.py" "$2" ;;
  *) echo "run.sh: units or models, not ${1:-nothing}" >&2; exit 64 ;;
esac
