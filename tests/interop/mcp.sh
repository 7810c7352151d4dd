#!/usr/bin/env bash
# Has the official Python client of the Model Context Protocol call each tool of `epitome mcp`. Shows that a host which is not ours
# understands the server; matters because hosts are the only users it has.
#
# The package comes from PyPI, pinned in mcp-requirements.txt, into .venv-mcp beside this script. Without Python 3.10 or without a
# network this prints one line and succeeds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

source ./venv.sh
venv .venv-mcp mcp-requirements.txt mcp

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/.claude/projects/harbour"
said='{"parentUuid":null,"isSidechain":false,"cwd":"/harbour","sessionId":"harbour-1","type":"user","uuid":"u1",
  "timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":"Ask the harbour master."}}'
tr -d '\n' <<<"$said" >"$work/.claude/projects/harbour/harbour-1.jsonl"
# With the examples its crates have the features that `cargo test --workspace` builds them with: they are not built again.
cargo build --quiet --workspace --bin epitome --examples
"$python" mcp_client.py "${CARGO_TARGET_DIR:-../../target}/debug/epitome" "$work"
