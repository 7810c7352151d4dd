#!/usr/bin/env bash
# Runs a command with the servers that tests of stores use: tests/servers.sh COMMAND [ARGUMENT...]
#
# Each file in tests/servers/ knows one server: `install_NAME` installs it where it is missing and that is possible,
# `start_NAME FOLDER` starts it on loopback with all that it writes in FOLDER and exports EPITOME_TEST_NAME (a url),
# `stop_NAME FOLDER` stops it. A server whose url is set already is used as it is. One that cannot be had is said to be
# skipped, and its tests say the same; EPITOME_REQUIRE (`postgres,redis`) makes that a failure.
set -euo pipefail

if [[ $# -eq 0 ]]; then
  echo "usage: tests/servers.sh COMMAND [ARGUMENT...]" >&2
  exit 2
fi

servers=$(cd "$(dirname "${BASH_SOURCE[0]}")/servers" && pwd)
folder=$(mktemp -d "${TMPDIR:-/tmp}/epitome-servers.XXXXXX")
# A server may run as another user, in a folder of its own in this one.
chmod 711 "$folder"
started=()

# stop_all FOLDER: it may be called while a function is starting a server, whose names it would see.
stop_all() {
  local folder=$1 name
  trap '' INT TERM HUP
  for name in "${started[@]}"; do
    "stop_$name" "$folder/$name" >"$folder/$name.stop.log" 2>&1 || cat "$folder/$name.stop.log" >&2
  done
  rm -rf "$folder"
}
trap "stop_all $(printf %q "$folder")" EXIT
# The shell hears a signal at once only while it waits for a child in the background. The last one begun is the command, or a
# server that is stopped anyway.
trap '[[ -z ${!:-} ]] || kill "$!" 2>/dev/null || true; exit 130' INT TERM HUP

# skipped NAME WHY
skipped() {
  echo "servers: $1 skipped: $2" >&2
  if [[ ,${EPITOME_REQUIRE:-}, == *",$1,"* ]]; then exit 1; fi
}

# free_port: one that nobody listens on at this moment
free_port() {
  local port
  while true; do
    port=$((RANDOM % 20000 + 20000))
    if ! (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
      echo "$port"
      return
    fi
  done
}

for file in "$servers"/*.sh; do
  name=$(basename "$file" .sh)
  url="EPITOME_TEST_${name^^}"
  [[ -z ${!url:-} ]] || continue
  # shellcheck source=/dev/null
  source "$file"
  if ! "install_$name" >"$folder/$name.install.log" 2>&1; then
    skipped "$name" "it is not installed and could not be: $(tail -n 1 "$folder/$name.install.log")"
    continue
  fi
  mkdir "$folder/$name"
  started+=("$name")
  if ! "start_$name" "$folder/$name" >"$folder/$name.start.log" 2>&1; then
    cat "$folder/$name.start.log" >&2
    skipped "$name" "it does not start"
  fi
done

"$@" &
wait "$!"
