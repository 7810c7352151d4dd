#!/usr/bin/env bash
# The extension in Pi, which asks a service on loopback: no account is needed, and nothing is sent elsewhere.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

# The version that the README names. It is a program of its own, and no part of the extension.
version=1.6.0
target_dir=$(realpath -m "${CARGO_TARGET_DIR:-../../target}")
tool=$target_dir/pi-$version
# Pi needs Node 22.19: many machines have an older one. The compiler checks the types of the extension.
packages="@earendil-works/pi-coding-agent@$version node@22.23.3 typescript@5.9.3 @types/node@22.20.7"

if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
  echo "pi: skipped: there is no node or no npm"
  exit 0
fi
node=$tool/node_modules/.bin/node
export PI=$tool/node_modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js
export EPITOME=$target_dir/debug/epitome
# shellcheck disable=SC2086 # Names of packages have no spaces.
if ! "$node" "$PI" --version >/dev/null 2>&1 &&
  ! npm install --prefix "$tool" --no-save --no-audit --no-fund --silent $packages >/dev/null 2>&1; then
  echo "pi: skipped: Pi could not be installed (no network?)"
  exit 0
fi
if ! "$node" "$PI" --version >/dev/null 2>&1; then
  echo "pi: skipped: Pi does not start on this machine"
  exit 0
fi
# Beside the packages, where the compiler finds their types.
cp epitome.ts "$tool/"
(cd "$tool" && node_modules/.bin/tsc --noEmit --strict --skipLibCheck --module nodenext --target es2023 --types node epitome.ts)
cargo build --quiet -p epitome-cli
# A test that fails leaves its Pi behind.
"$node" --test --test-force-exit test/*.test.js
echo "pi: ok, with Pi $version"
