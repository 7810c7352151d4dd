#!/usr/bin/env bash
# What counting costs in instructions under valgrind, beside its targets: the same on every run, whatever else is running.
#
#   benches/counters_instructions.sh [MESSAGES [BYTES]]    texts of a made-up history, 500 by default; and texts of one
#                                                          kind of BYTES and of twice that, 131072 by default
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

messages=${1:-500} bytes=${2:-131072}
if ! command -v valgrind >/dev/null; then
  echo "counters_instructions.sh: skipped: valgrind is not installed"
  exit 0
fi
cargo build --quiet --release -p epitome-benches --bin counters
program=${CARGO_TARGET_DIR:-target}/release/counters

# count STEP SIZE: the instructions of a step.
count() {
  valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect="*once::measured*" \
    "$program" --once "$1" "$2" 2>&1 | sed -n 's/.*Collected : //p'
}

# ratio A B: with two digits.
ratio() {
  local hundredths=$(($1 * 100 / $2))
  echo "$((hundredths / 100)).$(printf %02d $((hundredths % 100)))"
}

# row CASE RATIO RELATION TARGET
row() {
  local said=met
  awk "BEGIN { exit !($2 $3 $4) }" || said="**missed**"
  echo "| $1 | $2 | $3 $4: $said |"
}

fast=$(count fast "$messages") reference=$(count reference "$messages") estimate=$(count estimate "$messages")
stream=$(count stream "$messages") stream_of_tokens=$(count stream-of-tokens "$messages")
echo "| instructions | ratio | target |"
echo "|---|---|---|"
row "tiktoken-rs to the fast counter, warm" "$(ratio "$reference" "$fast")" ">=" 4
# Its target is one of time: its instructions wait for nothing, those of a tokenizer for memory.
echo "| tiktoken-rs to the estimator | $(ratio "$reference" "$estimate") | - |"
row "a stream to one count of the whole, 6 bytes at a time" "$(ratio "$stream" "$fast")" "<=" 3
row "a stream to one count of the whole, a token at a time" "$(ratio "$stream_of_tokens" "$fast")" "<=" 3
whole=$(count whole "$messages") up_to=$(count up-to-a-tenth "$messages")
row "counting a text up to a tenth of its tokens to counting it" "$(ratio "$up_to" "$whole")" "<=" 0.15
for kind in "one letter" spaces dashes newlines base64 hex letters ideographs "mixed scripts"; do
  half=$(count "$kind" "$bytes") whole=$(count "$kind" $((2 * bytes)))
  row "twice the text: $kind" "$(ratio "$whole" "$half")" "<=" 2.3
done
