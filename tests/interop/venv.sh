# What the scripts here begin with: a Python with pinned packages in an environment of its own beside them, which is not
# touched where there is none to be had. Sourced, not run.

# skip WHY: says so, and succeeds
skip() {
  echo "$(basename "$0"): skipped: $1"
  exit 0
}

# example NAME: sets `epitome` to its program, built as `cargo test --workspace` builds it: with the features of the whole
# workspace, so that no crate is built once more with fewer.
example() {
  cargo build --quiet --workspace --example "$1"
  epitome=("${CARGO_TARGET_DIR:-../../target}/debug/examples/$1")
}

# venv FOLDER REQUIREMENTS PACKAGES: makes FOLDER, and sets `python` to the one in it
venv() {
  local found=${PYTHON:-python3}
  "$found" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || skip "no Python 3.10 or newer"
  [[ -x $1/bin/python ]] || "$found" -m venv "$1" >/dev/null 2>&1 || skip "no venv module"
  python=$1/bin/python
  "$python" -m pip install --quiet --disable-pip-version-check -r "$2" >/dev/null 2>&1 ||
    skip "$3 could not be installed (no network?)"
}
