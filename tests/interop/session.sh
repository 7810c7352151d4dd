#!/usr/bin/env bash
# Hands a session from Microsoft Agent Framework (Python) to Epitome and back, in both directions. Shows that each reads what
# the other writes, and that nothing of it is lost. Matters because a session outlives the program that began it.
#
# The package comes from PyPI, pinned in requirements.txt, into .venv beside this script. Without Python 3.10 or without a
# network this prints one line and succeeds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

source ./venv.sh
venv .venv requirements.txt agent-framework-core

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
example session_interop

# Theirs, continued here, read there, added to there, continued here again, read there again.
"$python" session.py make "$work/theirs.json"
first=$("${epitome[@]}" continue "$work/theirs.json" "$work/ours.json")
"$python" session.py check "$work/theirs.json" "$work/ours.json" "$work/back.json"
second=$("${epitome[@]}" continue "$work/back.json" "$work/again.json")
"$python" session.py check "$work/back.json" "$work/again.json" "$work/end.json"
# Two messages of the run here and one that was added there.
[[ $second -eq $((first + 3)) ]] || { echo "session.sh: $second messages after $first" >&2; exit 1; }

# Ours, read there unchanged, continued here.
"${epitome[@]}" new "$work/new.json"
"$python" session.py check "$work/new.json" "$work/new.json" "$work/new-back.json"
third=$("${epitome[@]}" continue "$work/new-back.json" "$work/new-again.json")
[[ $third -eq 6 ]] || { echo "session.sh: $third messages instead of 6" >&2; exit 1; }

# Theirs, of which a compaction has excluded the older part: that is not sent here either, but for the first request and the
# request that their oldest answer belongs to. The third is the one of the run.
shown=$("$python" session.py compact "$work/compacted.json")
fourth=$("${epitome[@]}" continue "$work/compacted.json" "$work/compacted-ours.json")
"$python" session.py check "$work/compacted.json" "$work/compacted-ours.json" "$work/compacted-back.json"
[[ $fourth -eq $((shown + 3)) ]] || { echo "session.sh: $fourth messages, of which they show $shown" >&2; exit 1; }

# Ours, which a compaction here has left a summary and the last turn of: that is what is sent there, and what is read back.
"${epitome[@]}" compacted "$work/ours-compacted.json" >"$work/sent-here"
"$python" session.py sent "$work/ours-compacted.json" >"$work/sent-there"
diff "$work/sent-here" "$work/sent-there" || { echo "session.sh: there it is not sent as here" >&2; exit 1; }
"$python" session.py check "$work/ours-compacted.json" "$work/ours-compacted.json" "$work/compacted-there.json"
fifth=$("${epitome[@]}" continue "$work/compacted-there.json" "$work/compacted-again.json")
# What was sent, what was added there, and the request of the run.
[[ $fifth -eq $(($(wc -l <"$work/sent-here") + 2)) ]] || { echo "session.sh: $fifth messages of a compacted session" >&2; exit 1; }
echo "session.sh: both directions agree ($first, then $second messages; $third of ours; $fourth and $fifth after compactions)"
