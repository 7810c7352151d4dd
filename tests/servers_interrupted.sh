#!/usr/bin/env bash
# Interrupts tests/servers.sh while it starts its servers, and when it has: no server and no file of it may be left.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$(mktemp -d "${TMPDIR:-/tmp}/epitome-interrupted.XXXXXX")
chmod 711 "$folder"
trap 'rm -rf "$folder"' EXIT
unset EPITOME_TEST_POSTGRES EPITOME_TEST_REDIS EPITOME_REQUIRE
# Whoever is started by a shell that ignores SIGINT (in the background, under nohup) ignores it too, and cannot undo that itself.
heeding=()
! env --default-signal=INT true 2>/dev/null || heeding=(env --default-signal=INT)

# interrupt SIGNAL COMMAND...: sends it as soon as the command says yes
interrupt() {
  local signal=$1 pid
  shift
  # In the background a shell does not hear SIGINT unless it has jobs of its own.
  set -m
  TMPDIR=$folder ${heeding[@]+"${heeding[@]}"} "$here/servers.sh" \
    bash -c "touch '$folder/all'; sleep 600" >"$folder/log" 2>&1 &
  pid=$!
  set +m
  # Where a server is missing, what is waited for never comes.
  until "$@" || is_there "$folder/all"; do
    kill -0 "$pid" 2>/dev/null || { cat "$folder/log"; return 1; }
    sleep 0.1
  done
  kill -s "$signal" "$pid"
  wait "$pid" || true
  rm -f "$folder/log" "$folder/all"
  if pgrep -af "$folder" || [[ -n $(ls "$folder") ]]; then
    echo "servers.sh left something behind $signal when: $*" >&2
    pkill -f "$folder/epitome-servers" || true
    return 1
  fi
}

is_there() { compgen -G "$1" >/dev/null; }

interrupt TERM is_there "$folder/epitome-servers.*/*/data/PG_VERSION"
interrupt INT is_there "$folder/epitome-servers.*/*/node-1/pid"
interrupt TERM is_there "$folder/all"
