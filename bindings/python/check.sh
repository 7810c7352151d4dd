#!/usr/bin/env bash
# Tests the Python package with the pinned packages of requirements.txt, in an environment beside this script. Without Python 3.10 or
# without a network this prints one line and succeeds.
#
# check.sh          the debug library, all tests, mypy, and a wheel with the debug library that is installed and imported
# check.sh --bench  the comparison of bench.py too, with a release library
#
# The wheel for users has a release library, which takes minutes: pip wheel --no-deps ./bindings/python
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

skip() {
  echo "python: skipped: $1"
  exit 0
}

found=${PYTHON:-python3}
"$found" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || skip "no Python 3.10 or newer"
[[ -x .venv/bin/python ]] || "$found" -m venv .venv >/dev/null 2>&1 || skip "no venv module"
python=$PWD/.venv/bin/python
# The packages are compiled when they are imported, which most of them never are.
"$python" -m pip install --quiet --disable-pip-version-check --no-compile -r requirements.txt >/dev/null 2>&1 ||
  skip "the packages of requirements.txt could not be installed (no network?)"

target=${CARGO_TARGET_DIR:-../../target}
mkdir -p "$target"
target=$(cd "$target" && pwd)
case $(uname -s) in
  Darwin) name=libepitome_c.dylib ;;
  *) name=libepitome_c.so ;;
esac
# With the whole workspace, so that no crate is built once more with other features.
cargo build --quiet --workspace --lib
export EPITOME_LIBRARY=$target/debug/$name
export LITELLM_LOCAL_MODEL_COST_MAP=True OPENAI_AGENTS_DISABLE_TRACING=1

PYTHONPATH=src "$python" -W ignore -m unittest --locals tests.test_core tests.test_hostile tests.test_session tests.test_adapters
"$python" -m mypy --no-error-summary

# A wheel has the library in it, and needs neither the sources nor the variable.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir "$work" .
"$python" -m venv --without-pip "$work/venv"
"$python" -m pip --quiet --disable-pip-version-check --python "$work/venv/bin/python" install --no-index "$work"/*-py3-none-*.whl
(cd "$work" && env -u EPITOME_LIBRARY venv/bin/python -c \
  'import epitome; assert epitome.count("Hello", tokenizer="o200k_base") == 1; print("python: the wheel runs,", epitome.version())')

if [[ ${1:-} == --bench ]]; then
  cargo build --quiet --release -p epitome-c
  EPITOME_LIBRARY=$target/release/$name PYTHONPATH=src "$python" bench.py
fi
