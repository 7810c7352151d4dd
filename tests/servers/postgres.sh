# Postgres, for tests/servers.sh. It refuses to run as root: then it runs as the user `postgres`.

postgres_bin() {
  local bin
  if command -v initdb >/dev/null; then
    dirname "$(command -v initdb)"
    return
  fi
  for bin in /usr/lib/postgresql/*/bin; do
    [[ -x $bin/initdb ]] && echo "$bin" && return
  done
  echo "there is no initdb, neither in PATH nor in /usr/lib/postgresql" >&2
  return 1
}

install_postgres() {
  postgres_bin && return
  if [[ $(id -u) -eq 0 ]] && command -v apt-get; then
    # The package would start a server of its own otherwise.
    mkdir -p /etc/postgresql-common
    [[ -e /etc/postgresql-common/createcluster.conf ]] ||
      echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf
    apt-get update -q
    DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -q --no-install-recommends postgresql openssl
  fi
  postgres_bin
}

# as_postgres COMMAND...
as_postgres() {
  if [[ $(id -u) -eq 0 ]]; then
    # From where that user may be.
    (cd / && runuser -u postgres -- "$@")
  else
    "$@"
  fi
}

# Called where a failing command ends nothing by itself.
start_postgres() {
  local folder=$1 bin port password attempt
  bin=$(postgres_bin) || return
  password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n') || return
  postgres_certificates "$folder" && echo "$password" >"$folder/password" || return
  [[ $(id -u) -ne 0 ]] || chown -R postgres "$folder" || return
  # Without TLS the password goes as it is, on loopback only: to prove it takes a client without optimization longer than
  # most tests. With TLS it is proved.
  as_postgres "$bin/initdb" -D "$folder/data" -U epitome -A password -E UTF8 --locale=C.UTF-8 \
    --pwfile="$folder/password" &&
    sed -i '1i hostssl all all 127.0.0.1/32 scram-sha-256' "$folder/data/pg_hba.conf" &&
    as_postgres cp "$folder/server.crt" "$folder/server.key" "$folder/data" || return
  for attempt in 1 2 3 4 5; do
    port=$(free_port)
    if as_postgres "$bin/pg_ctl" -D "$folder/data" -l "$folder/data/log" -w -t 300 start \
      -o "-p $port -c listen_addresses=127.0.0.1 -c unix_socket_directories=$folder -c fsync=on -c ssl=on"; then
      export EPITOME_TEST_POSTGRES="postgres://epitome:$password@127.0.0.1:$port/postgres?sslmode=disable"
      export EPITOME_TEST_POSTGRES_CA=$folder/ca.crt
      return
    fi
    echo "attempt $attempt on port $port failed"
  done
  cat "$folder/data/log"
  return 1
}

# An authority, and the server's certificate signed by it.
postgres_certificates() {
  local folder=$1
  openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=epitome test authority" \
    -keyout "$folder/ca.key" -out "$folder/ca.crt" &&
    openssl req -new -newkey rsa:2048 -nodes -subj "/CN=127.0.0.1" \
      -keyout "$folder/server.key" -out "$folder/server.csr" && chmod 600 "$folder/server.key" &&
    openssl x509 -req -in "$folder/server.csr" -days 2 -CA "$folder/ca.crt" -CAkey "$folder/ca.key" -CAcreateserial \
      -extfile <(echo "subjectAltName=IP:127.0.0.1,DNS:localhost") -out "$folder/server.crt"
}

stop_postgres() {
  local pid
  [[ -e $1/data/postmaster.pid ]] || return 0
  pid=$(head -n 1 "$1/data/postmaster.pid")
  as_postgres "$(postgres_bin)/pg_ctl" -D "$1/data" -m immediate -w -t 300 stop || return
  # Its file goes a moment before the process does, which stays as a zombie where nobody waits for it.
  for _ in {1..600}; do
    [[ -n $pid && -e /proc/$pid && $(cut -d ' ' -f 3 "/proc/$pid/stat" 2>/dev/null) != Z ]] || return 0
    sleep 0.1
  done
}
