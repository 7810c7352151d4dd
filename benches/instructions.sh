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
  out=$(valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect="*steps::$2" \
    "$program" --once "$1" "$messages" 2>&1)
  collected=$(sed -n 's/.*Collected : //p' <<<"$out")
  sizes=$(grep spans <<<"$out")
  of=$(grep -o "[0-9]* $3" <<<"$sizes" | cut -d' ' -f1)
  echo "| $1 | $((collected / of)) | ${3%s} | $4 |"
}

echo "| step | instructions | for each | target |"
echo "|---|---|---|---|"
measure group group messages "<= 400"
measure parts group_with_parts messages "<= 400"
measure plan planned spans "-"
measure clear cleared spans "-"
measure prefix planned spans "-"
measure validate violations messages "-"

# How the instructions of pushing all messages grow with their number: the exponent between a thousand and a million.
pushing() {
  valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect="*steps::group" \
    "$program" --once group "$1" 2>&1 | sed -n 's/.*Collected : //p'
}
awk -v few="$(pushing 1000)" -v many="$(pushing 1000000)" \
  'BEGIN { printf "| push, growth from 1,000 to 1,000,000 | exponent %.4f | - | 0.98 to 1.02 |\n", log(many / few) / log(1000) }'
