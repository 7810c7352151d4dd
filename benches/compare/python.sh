#!/usr/bin/env bash
# Truncates one made-up conversation with Microsoft Agent Framework (Python) and with Epitome, and prints what each was
# given, what it returned and how long it took. Matters because both stand between a user and the next model call.
#
#   benches/compare/python.sh            10,000 messages (half a minute to a minute, nearly all of it theirs)
#   benches/compare/python.sh --smoke    500 messages
#
# The package comes from PyPI, pinned in requirements.txt, into .venv beside this script. Without Python 3.10 or without a
# network this prints one line and succeeds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

messages=10000
if [[ ${1:-} == --smoke ]]; then
  messages=500
elif [[ $# -gt 0 ]]; then
  echo "usage: benches/compare/python.sh [--smoke]" >&2
  exit 2
fi
# Both are asked for this share of the conversation, each by its own count.
percent=10

skip() {
  echo "python.sh: skipped: $1"
  exit 0
}

python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || skip "no Python 3.10 or newer"
[[ -x .venv/bin/python ]] || "$python" -m venv .venv >/dev/null 2>&1 || skip "no venv module"
.venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements.txt >/dev/null 2>&1 ||
  skip "agent-framework-core could not be installed (no network?)"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
epitome=(cargo run --quiet --release -p epitome-benches --bin beside_others --)
"${epitome[@]}" generate "$messages" "$work/history.json"
"${epitome[@]}" truncate "$work/history.json" "$percent" >"$work/epitome.json"
.venv/bin/python compare.py "$work/history.json" "$work/epitome.json" "$percent"
