#!/usr/bin/env bash
# Compacts transcripts of every format with every strategy to several goals, and has a checker that shares no code with the project
# look at each result. Shows that what is written is valid, paired, in order and held to the promises; matters because the
# project's own tests read with the project's own readers.
#
#   tests/sweep.sh                 the project's fixtures, a conversation in nine formats and, where it is there, ../shared/data: a sample
#   tests/sweep.sh [--all] [--verbose] FOLDER...   these folders; all goals, and files of any size
#
# Without Python 3.10 this prints one line and succeeds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python=${PYTHON:-python3}
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
  echo "sweep.sh: skipped: no Python 3.10 or newer"
  exit 0
fi
if [[ $# -eq 0 ]]; then
  set -- examples fuzz/seeds
  [[ ! -d ../shared/data ]] || set -- "$@" ../shared/data
fi
# With the examples its crates have the features that `cargo test --workspace` builds them with: they are not built again.
cargo build --quiet --workspace --bin epitome --examples
"$python" -B tests/sweep/test_check.py
exec "$python" -B tests/sweep/check.py "${CARGO_TARGET_DIR:-target}/debug/epitome" "$@"
