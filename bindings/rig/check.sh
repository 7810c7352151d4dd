#!/usr/bin/env bash
# The memory for agents of rig, with an agent of rig and a scripted model.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

if ! cargo fetch --locked --quiet 2>/dev/null; then
  echo "rig: skipped: the crates of rig could not be fetched (no network?)"
  exit 0
fi
cargo fmt --check
cargo clippy --locked --quiet --all-targets -- -D warnings
cargo clippy --locked --quiet --features sqlite -- -D warnings
cargo test --locked --quiet
