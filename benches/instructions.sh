#!/usr/bin/env bash
# How many instructions each step takes, under valgrind: the same on every run, so small changes show.
#
#   benches/instructions.sh [MESSAGES]    of a made-up history, 20,000 by default
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

messages=${1:-20000}
if ! command -v valgrind >/dev/null; then
  echo "instructions.sh: skipped: valgrind is not installed"
  exit 0
fi
cargo build --quiet --release -p epitome-benches --bin first_numbers
program=${CARGO_TARGET_DIR:-target}/release/first_numbers

# measure STEP FUNCTION UNIT TARGET: counts inside of FUNCTION, and divides by the step's messages or spans.
measure() {
  local out collected sizes of
  out=$(valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect="*grouping::$2*" \
    "$program" --once "$1" "$messages" 2>&1)
  collected=$(sed -n 's/.*Collected : //p' <<<"$out")
  sizes=$(grep spans <<<"$out")
  of=$(grep -o "[0-9]* $3" <<<"$sizes" | cut -d' ' -f1)
  echo "| $1 | $((collected / of)) | ${3%s} | $4 |"
}

echo "| step | instructions | for each | target |"
echo "|---|---|---|---|"
measure group group messages "<= 400"
measure plan planned spans "-"
measure prefix planned spans "-"
measure validate violations messages "-"
