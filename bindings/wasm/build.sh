#!/usr/bin/env bash
# Builds epitome.wasm beside this script, without exact tokenizers and without stores, and says its size.
#
# usage: build.sh [PROFILE]    the profile of Cargo [default: small, which takes minutes; dev is for tests]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

profile=${1:-small} target=wasm32-unknown-unknown
[[ -d $(rustc --print target-libdir --target "$target") ]] || rustup target add "$target" >/dev/null 2>&1 || {
  echo "build.sh: skipped: the target $target is not installed and could not be added"
  exit 0
}
# Random numbers come from the host: src/wasm.rs of the C library.
RUSTFLAGS='--cfg getrandom_backend="custom"' \
  cargo build --quiet --profile "$profile" -p epitome-c --no-default-features --target "$target"
cp "${CARGO_TARGET_DIR:-../../target}/$target/${profile/#dev/debug}/epitome_c.wasm" epitome.wasm
echo "epitome.wasm: $(wc -c <epitome.wasm) bytes, $(gzip -9 <epitome.wasm | wc -c) compressed by gzip"
