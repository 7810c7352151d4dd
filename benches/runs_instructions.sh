#!/usr/bin/env bash
# Whether the runs of a long session cost what those of a short one do, in instructions under valgrind: the same on every
# run, so small changes show.
#
#   benches/runs_instructions.sh [TURNS]    in a tenth of the session, 1,000 by default
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

turns=${1:-1000}
if ! command -v valgrind >/dev/null; then
  echo "runs_instructions.sh: skipped: valgrind is not installed"
  exit 0
fi
cargo build --quiet --release -p epitome-benches --bin runs
program=${CARGO_TARGET_DIR:-target}/release/runs

# count FUNCTION: the instructions inside of it.
count() {
  valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect="*runs::$1*" "$program" --loop "$turns" 2>&1 |
    sed -n 's/.*Collected : //p'
}

early=$(count early_turns) late=$(count late_turns)
hundredths=$((late * 10000 / early))
echo "| turns | instructions a turn |"
echo "|---|---|"
echo "| $((2 * turns + 1)) to $((3 * turns)) | $((early / turns)) |"
echo "| $((9 * turns + 1)) to $((10 * turns)) | $((late / turns)) |"
echo "ratio $((hundredths / 10000)).$(printf %04d $((hundredths % 10000))), target <= 1.02"
((hundredths <= 10200))
