#!/usr/bin/env bash
# Has the typed models of the vendors' own Python packages look at what is sent to the services that compact, and make the
# answers that are read here. Shows that both sides mean the same by the wire; matters because nobody here can ask the services.
#
# The packages come from PyPI, pinned in managed-requirements.txt, into .venv-managed beside this script. Without Python 3.10 or
# without a network this prints one line and succeeds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

source ./venv.sh
venv .venv-managed managed-requirements.txt "openai and anthropic"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/requests" "$work/answers" "$work/next"
example managed_interop

"${epitome[@]}" write "$work/requests"
requests=$("$python" managed.py check "$work/requests" 11)
"$python" managed.py make "$work/answers"
"${epitome[@]}" read "$work/answers" "$work/next" >"$work/told"
answers=$("$python" managed.py told "$work/told")
# What goes on from those answers.
next=$("$python" managed.py check "$work/next" 12)
echo "managed.sh: openai and anthropic agree with $requests requests, $answers answers and $next requests behind them"
