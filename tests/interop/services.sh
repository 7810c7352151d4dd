#!/usr/bin/env bash
# Compares the requests of the context providers for Mem0 and Azure AI Search with those of Microsoft Agent Framework's providers, and has
# the first store and find memories in Mem0's own package with a vector store on disk. Shows that the services get what they expect and
# that what was said is found again; matters because the tests of the crates play the services themselves.
#
# The packages come from PyPI, pinned in services-requirements.txt, into .venv-services beside this script. Without Python 3.10 or without a
# network this prints one line and succeeds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

source ./venv.sh
venv .venv-services services-requirements.txt "mem0ai and the packages of Agent Framework"

work=$(mktemp -d)
server=
trap 'kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
example azure_search_interop
azure=("${epitome[@]}")
example mem0_interop
HOME=$work "$python" services.py serve "$work" >"$work/port" 2>"$work/log" &
server=$!
for _ in {1..600}; do [[ ! -s $work/port ]] || break; kill -0 "$server" || { cat "$work/log" >&2; exit 1; }; sleep 0.1; done
url=http://127.0.0.1:$(<"$work/port")

fail() {
  echo "services.sh: $1" >&2
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
    asked theirs env HOME="$work" "$python" services.py mem0 "$url" "$search" "$store" "What do I drink?" "Tea."
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
"${epitome[@]}" own "$url" "" "user=bob" "My boat is called Osprey." "A fine name."
bobs=$(found user=bob "How is my boat called?")
[[ $bobs == *Osprey* && $bobs != *Kestrel* ]] || fail "bob finds what alice said, or not what he said"
"${epitome[@]}" inferring "$url" "" "user=carol" "I always have oolong." "Noted."
found user=carol "oolong" | grep -qxF -- "- The user drinks oolong." || fail "what the model inferred is not found"
carols=$(found user=carol "oolong")
[[ $carols == *oolong* && $carols != *"I always have"* ]] || fail "what was said is stored as it is, though the model inferred"
searches=0
for searched in "index words" "index vectors" "meaning words" "meaning vectors" "base base"; do
  read -r kind name <<<"$searched"
  asked theirs env HOME="$work" "$python" services.py azure "$url" "$kind" "$name" "When does it open?"
  asked ours "${azure[@]}" "$url" "$kind" "$name" "When does it open?"
  diff "$work/theirs" "$work/ours" || fail "other requests than theirs: $searched"
  [[ -s $work/theirs ]] || fail "no requests: $searched"
  # The same documents, which are entries of a list here; those of a knowledge base have their places behind them.
  diff "$work/theirs.said" <(sed '/^- Sources: /d; s/^- //' "$work/ours.said") || fail "other documents than theirs: $searched"
  searches=$((searches + 1))
done
echo "services.sh: the requests of $scopes runs with Mem0 and of $searches with Azure AI Search are theirs; what was said and what was inferred is found by its owner alone"
