#!/usr/bin/env bash
# Opens pages of `epitome report` and `epitome session inspect` in Chromium. Shows that a page loads without an error, says what the program
# says, can be used with the keyboard, and never executes what stands in a transcript; matters because only a browser decides what is markup.
#
# Without Node, npm or Chromium this prints one line and succeeds; Debian's package of Chromium is installed where that is possible.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/browser"

for tool in node npm; do
  command -v "$tool" >/dev/null || { echo "browser: skipped: there is no $tool"; exit 0; }
done
if ! npm ci --silent --no-audit --no-fund >/dev/null 2>&1; then
  echo "browser: skipped: playwright-core and axe-core could not be installed (no network?)"
  exit 0
fi
chromium=${CHROMIUM:-$(command -v chromium || command -v google-chrome || true)}
if [[ -z $chromium ]]; then
  apt-get -o DPkg::Lock::Timeout=300 install -qq -y --no-install-recommends chromium >/dev/null 2>&1 || true
  chromium=$(command -v chromium || true)
fi
if [[ -z $chromium ]]; then
  echo "browser: skipped: there is no Chromium, and Debian's package could not be installed (needs root)"
  exit 0
fi
if ! timeout 60 "$chromium" --headless --no-sandbox --disable-dev-shm-usage --dump-dom about:blank >/dev/null 2>&1; then
  echo "browser: skipped: $chromium does not start here"
  exit 0
fi
# With the examples its crates have the features that `cargo test --workspace` builds them with: they are not built again.
cargo build --quiet --workspace --bin epitome --examples
EPITOME="$(cd "${CARGO_TARGET_DIR:-../../target}" && pwd)/debug/epitome" CHROMIUM=$chromium node --test --test-reporter=dot
