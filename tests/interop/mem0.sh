#!/usr/bin/env bash
# Has the context provider for Mem0 store and find memories in the real package with a vector store on disk, and compares its requests to
# the hosted service with those of Microsoft Agent Framework's provider. Shows that the service gets what it expects and that what was said
# is found again; matters because the tests of the crate play the service themselves.
#
# The packages come from PyPI, pinned in mem0-requirements.txt, into .venv-mem0 beside this script. Without Python 3.10 or without a
# network this prints one line and succeeds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

source ./venv.sh
venv .venv-mem0 mem0-requirements.txt mem0ai

work=$(mktemp -d)
trap 'kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
example mem0_interop
HOME=$work "$python" mem0_service.py serve "$work" >"$work/port" 2>"$work/log" &
server=$!
for _ in {1..600}; do [[ ! -s $work/port ]] || break; kill -0 "$server" || { cat "$work/log" >&2; exit 1; }; sleep 0.1; done
url=http://127.0.0.1:$(<"$work/port")

fail() {
  echo "mem0.sh: $1" >&2
  tail -n 20 "$work/log" >&2
  exit 1
}

# asked WHO COMMAND..: runs it, and keeps the requests that the hosted service gets by it. Of several under way at once the order is not known.
asked() {
  : >"$work/requests.jsonl"
  "${@:2}" >"$work/$1.said"
  sort "$work/requests.jsonl" >"$work/$1"
}

scopes=0
for search in user=alice agent=helper application=shop user=alice,application=shop user=alice,agent=helper,application=shop; do
  for store in user=alice user=alice,agent=helper,application=shop; do
    asked theirs env HOME="$work" "$python" mem0_service.py original "$url" "$search" "$store" "What do I drink?" "Tea."
    asked ours "${epitome[@]}" hosted "$url" "$search" "$store" "What do I drink?" "Tea."
    diff "$work/theirs" "$work/ours" || fail "other requests than theirs: search $search, store $store"
    # The same memories, which are entries of a list here.
    diff "$work/theirs.said" <(sed 's/^- //' "$work/ours.said") || fail "other memories than theirs: search $search"
    scopes=$((scopes + 1))
  done
done

# What is stored as it is, and what the model infers, is found again by its owner and by nobody else.
found() { "${epitome[@]}" own "$url" "$1" "user=nobody" "$2" "Nothing."; }
"${epitome[@]}" own "$url" "" "user=alice,agent=helper" "My boat is called Kestrel." "A fine name." >"$work/first"
[[ ! -s $work/first ]] || fail "memories without a scope"
found user=alice "How is my boat called?" | grep -qxF -- "- My boat is called Kestrel." || fail "what alice said is not found"
found agent=helper "How is my boat called?" | grep -qF "Kestrel" || fail "what the agent heard is not found"
[[ -z $(found user=bob "How is my boat called?") ]] || fail "bob finds what alice said"
"${epitome[@]}" inferring "$url" "" "user=carol" "I always have oolong." "Noted."
found user=carol "oolong" | grep -qxF -- "- The user drinks oolong." || fail "what the model inferred is not found"
! found user=carol "oolong" | grep -qF "I always have" || fail "what was said is stored as it is, though the model inferred"
echo "mem0.sh: the requests of $scopes runs are theirs; what was said and what was inferred is found by its owner alone"
