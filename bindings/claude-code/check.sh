#!/usr/bin/env bash
# The plugin in Claude Code, which asks a service on loopback: no account is needed, and nothing is sent elsewhere.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

# The version that the README names. It is a program of its own, and no part of the plugin.
version=2.1.197
target_dir=$(realpath -m "${CARGO_TARGET_DIR:-../../target}")
tool=$target_dir/claude-code-$version

if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
  echo "claude-code: skipped: there is no node or no npm"
  exit 0
fi
export CLAUDE=$tool/node_modules/.bin/claude
if ! "$CLAUDE" --version >/dev/null 2>&1 &&
  ! npm install --prefix "$tool" --no-save --no-audit --no-fund --silent "@anthropic-ai/claude-code@$version" >/dev/null 2>&1; then
  echo "claude-code: skipped: Claude Code could not be installed (no network?)"
  exit 0
fi
if ! "$CLAUDE" --version >/dev/null 2>&1; then
  echo "claude-code: skipped: Claude Code does not start on this machine"
  exit 0
fi
cargo build --quiet -p epitome-cli
PATH=$target_dir/debug:$PATH node --test test/*.test.js
echo "claude-code: ok, with Claude Code $version"
