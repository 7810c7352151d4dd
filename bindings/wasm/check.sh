#!/usr/bin/env bash
# Builds the library for WebAssembly without optimization, and runs the tests in Node and in a browser.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

if ! command -v node >/dev/null; then
  echo "wasm: skipped: there is no node"
  exit 0
fi
said=$(./build.sh dev)
if [[ $said == *": skipped: "* ]]; then
  echo "wasm: skipped: ${said#*: skipped: }"
  exit 0
fi
if ! npm ci --silent --no-audit --no-fund >/dev/null 2>&1; then
  echo "wasm: skipped the browser: playwright-core could not be installed (no network?)"
elif [[ ! -x ${CHROMIUM:-/usr/bin/chromium} ]] && ! command -v google-chrome >/dev/null &&
  ! apt-get -o DPkg::Lock::Timeout=300 install -qq -y --no-install-recommends chromium >/dev/null 2>&1; then
  echo "wasm: skipped the browser: there is no Chromium, and Debian's package could not be installed"
fi
node --test test/
