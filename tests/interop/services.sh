#!/usr/bin/env bash
# Compares the requests of the context providers for Mem0, Azure AI Search and Redis with those of Microsoft Agent Framework's providers, and
# has the first store and find memories in Mem0's own package with a vector store on disk. Shows that the services get what they expect and
# that what was said is found again; matters because the tests of the crates play the services themselves.
#
# The packages come from PyPI, pinned in services-requirements.txt, into .venv-services beside this script. Without Python 3.10 or without a
# network this prints one line and succeeds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

source ./venv.sh
venv .venv-services services-requirements.txt "mem0ai and the packages of Agent Framework"

work=$(mktemp -d)
servers=()
trap 'kill "${servers[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT
example azure_search_interop
azure=("${epitome[@]}")
example redis_search_interop
redis=("${epitome[@]}")
example mem0_interop
HOME=$work "$python" services.py serve "$work" >"$work/port" 2>"$work/log" &
servers+=($!)
# port NAME: of the server that was started last, when it has said it
port() {
  for _ in {1..600}; do [[ ! -s $work/$1 ]] || break; kill -0 "${servers[-1]}" || { cat "$work/log" >&2; exit 1; }; sleep 0.1; done
  cat "$work/$1"
}
url=http://127.0.0.1:$(port port)

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
for searched in "index words" "index vectors" "meaning words" "meaning vectors" "base base" "filtered base" "made words" "made vectors"; do
  read -r kind name <<<"$searched"
  asked theirs env HOME="$work" "$python" services.py azure "$url" "$kind" "$name" "When does it open?"
  asked ours "${azure[@]}" "$url" "$kind" "$name" "When does it open?"
  diff "$work/theirs" "$work/ours" || fail "other requests than theirs: $searched"
  [[ -s $work/theirs ]] || fail "no requests: $searched"
  # The same documents, which are entries of a list here; those of a knowledge base have their places behind them.
  diff "$work/theirs.said" <(sed '/^- Sources: /d; s/^- //' "$work/ours.said") || fail "other documents than theirs: $searched"
  searches=$((searches + 1))
done

# Redis: a server for each side, so that both make the index, and one that both use. Different on purpose: here indexes are listed once, the
# filter stands beside the words without an AND (which is a word where the index has no stop words), words are cut at punctuation, a factor
# has no rounding error, and keys follow from the run.
for name in theirs ours both; do
  "${redis[@]}" serve "$work/redis.$name" >"$work/redis.$name.port" 2>>"$work/log" &
  servers+=($!)
  declare "redis_$name=$(port "redis.$name.port")"
done
# commands NAME: those of a server, once it has written them, without the differences on purpose
commands() {
  sleep 0.2
  sed '/^FT\._LIST$/d; s/ AND / /; s/0\.30000000000000004/0.3/; s/?//g; s/^HSET\t\([a-z]*\):[^\t]*/HSET\t\1:KEY/' "$work/redis.$1"
}
talks=0
for searched in words vectors; do
  for scope in user=alice user=alice,agent=helper,application=shop application=shop user=al.ice@example.com; do
    for said in "How is my boat called?" "Tell me of the Kestrel_2 and tea"; do
      env HOME="$work" "$python" services.py redis "$redis_theirs" "$searched" "$scope" "$said" "It is the Kestrel." >"$work/theirs.said" 2>>"$work/log"
      "${redis[@]}" "$redis_ours" "$searched" "$scope" "$said" "It is the Kestrel." >"$work/ours.said" 2>>"$work/log"
      diff "$work/theirs.said" <(sed 's/^- //' "$work/ours.said") || fail "other memories than theirs in Redis: $searched, $scope"
      talks=$((talks + 1))
    done
  done
done
diff <(commands theirs) <(commands ours) || fail "other commands to Redis than theirs"
[[ $(commands ours | wc -l) -eq $((talks * 4)) ]] || fail "$talks runs are not $((talks * 4)) commands"
! grep '^fault' "$work/redis.theirs" "$work/redis.ours" || fail "the server for Redis did not know a command"
# One index for both: each finds what the other has stored. A user whose id has an operator in it is not another user here.
they() { env HOME="$work" "$python" services.py redis "$redis_both" words "$@" 2>>"$work/log"; }
we() { "${redis[@]}" "$redis_both" words "$@" 2>>"$work/log"; }
they user=bob "My boat is called Osprey" "Noted." >/dev/null
[[ $(we user=bob "Is my boat the Osprey" "Yes, the Osprey.") == *$'\n- My boat is called Osprey'* ]] ||
  fail "what they have stored in Redis is not found"
[[ $(they user=bob "osprey" "Well.") == *$'\nYes, the Osprey.'* ]] || fail "what is stored in Redis here is not found by them"
[[ $(they "user=mallory|bob" "osprey" "Well.") == *Osprey* ]] || fail "they escape a bar in an id now: docs/services.md says otherwise"
[[ $(we "user=mallory|bob" "osprey boat" "Well.") != *Osprey* ]] || fail "a bar in an id finds what is bob's"
! grep '^fault' "$work/redis.both" || fail "the server for Redis did not know a command"
echo "services.sh: the requests of $scopes runs with Mem0, of $searches with Azure AI Search and of $talks with Redis are theirs; what was said and what was inferred is found by its owner alone"
