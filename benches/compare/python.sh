#!/usr/bin/env bash
# Epitome beside the packages of Python: Microsoft Agent Framework, LangChain, Pydantic AI. What each was given, what it
# returned, what is wrong with that, and how long it took. `run.sh` adds the crates, and writes what it finds.
#
#   benches/compare/python.sh [--quick | --smoke]
#   benches/compare/python.sh --prepare    prints the interpreter that has the packages, or why there is none
#
# The packages come from PyPI, pinned in requirements.txt, into .venv beside this script. Without Python 3.10 or without a
# network Epitome is measured alone.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

why_not=
python=${PYTHON:-python3}
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
  why_not="no Python 3.10 or newer"
elif [[ ! -x .venv/bin/python ]] && ! "$python" -m venv .venv >/dev/null 2>&1; then
  why_not="no venv module"
elif ! .venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements.txt >/dev/null 2>&1; then
  why_not="the packages could not be installed (no network?)"
fi

if [[ ${1:-} == --prepare ]]; then
  [[ -z $why_not ]] || { echo "$why_not"; exit 1; }
  echo "$PWD/.venv/bin/python"
  exit
fi
if [[ -n $why_not ]]; then
  echo "python.sh: skipped: $why_not"
  packages=()
else
  packages=(--python .venv/bin/python compare.py)
fi
if [[ ${1:-} == --smoke ]]; then
  # No time matters, and `cargo test --workspace` has built it: with the features that the examples give all crates.
  cargo build --quiet --workspace --bin beside_others --examples
  exec "${CARGO_TARGET_DIR:-../../target}/debug/beside_others" "$@" "${packages[@]}"
fi
cargo run --quiet --release -p epitome-benches --bin beside_others -- "$@" "${packages[@]}"
