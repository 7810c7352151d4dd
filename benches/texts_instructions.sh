#!/usr/bin/env bash
# How many instructions a compaction takes for each byte of text that it reads, under valgrind, of 1 MB and of 10 MB: the same on every
# run but for the random keys of hash tables, whatever else is running.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! command -v valgrind >/dev/null; then
  echo "texts_instructions.sh: skipped: valgrind is not installed"
  exit 0
fi
cargo build --quiet --release -p epitome-benches --bin texts
program=${CARGO_TARGET_DIR:-target}/release/texts

# a_byte READER MEGABYTES: with one digit behind the point.
a_byte() {
  valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect="*texts::compact*" "$program" --once "$1" "$2" 2>&1 |
    awk -v bytes="$2e6" '/Collected : / { printf "%.1f", $NF / bytes }'
}

echo "| reader | instructions a byte, of 1 MB | of 10 MB |"
echo "|---|---:|---:|"
for reader in truncate salience "salience with relevance" ledger excerpts agent chat; do
  echo "| $reader | $(a_byte "$reader" 1) | $(a_byte "$reader" 10) |"
done
