# Redis for tests/servers.sh: a server, and a cluster of three. Beside EPITOME_TEST_REDIS, EPITOME_TEST_REDIS_CLUSTER names
# the servers of the cluster, with commas.

install_redis() {
  if command -v redis-server && command -v redis-cli; then return; fi
  if [[ $(id -u) -ne 0 ]] || ! command -v apt-get; then
    echo "redis-server is missing; install Redis 7 or later"
    return 1
  fi
  DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -qq -y redis-server \
    || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -qq -y redis-server; } || true
  # Where the package cannot start a server of its own, its programs are there all the same.
  command -v redis-server && command -v redis-cli
}

start_redis() {
  local folder=$1 node url cluster=() urls=
  redis_server "$folder/one" || return
  url="redis://127.0.0.1:$REDIS_PORT"
  for node in 1 2 3; do
    redis_server "$folder/node-$node" --cluster-enabled yes --cluster-node-timeout 60000 || return
    cluster+=("127.0.0.1:$REDIS_PORT")
    urls+=${urls:+,}redis://127.0.0.1:$REDIS_PORT
  done
  timeout 300 redis-cli --cluster create "${cluster[@]}" --cluster-yes || return
  for node in 1 2 3; do
    redis_says '^cluster_state:ok' "$(<"$folder/node-$node/pid")" "${cluster[node - 1]#*:}" cluster info || return
  done
  export EPITOME_TEST_REDIS=$url EPITOME_TEST_REDIS_CLUSTER=$urls
}

stop_redis() {
  local file pid
  for file in "$1"/*/pid; do
    [[ -e $file ]] || continue
    pid=$(<"$file")
    kill "$pid" || true
    wait "$pid" || true
  done
}

# redis_server FOLDER [OPTION...]: a server whose acknowledged writes are on the disk. Sets REDIS_PORT. A port that somebody
# else takes first is given up for another one.
redis_server() {
  local folder=$1 pid
  shift
  mkdir -p "$folder"
  for _ in 1 2 3 4 5; do
    # Below 50,000: a cluster talks 10,000 ports above.
    REDIS_PORT=$(free_port)
    redis-server --bind 127.0.0.1 --port "$REDIS_PORT" --dir "$folder" --save '' --appendonly yes --appendfsync always \
      "$@" >"$folder/log" 2>&1 &
    pid=$!
    echo "$pid" >"$folder/pid"
    if redis_says "^process_id:$pid[^0-9]*$" "$pid" "$REDIS_PORT" info server; then return; fi
    kill "$pid" || true
    wait "$pid" || true
  done
  tail -n 5 "$folder/log"
  return 1
}

# redis_says PATTERN PID PORT COMMAND...: waits until the server answers so, as long as it is there, and asks 600 times at most: a
# cluster agrees after seconds, on a busy machine after more.
redis_says() {
  local pattern=$1 pid=$2 port=$3
  shift 3
  for _ in {1..600}; do
    if timeout 10 redis-cli -h 127.0.0.1 -p "$port" "$@" 2>/dev/null | grep -q "$pattern"; then return; fi
    kill -0 "$pid" 2>/dev/null || return
    sleep 0.1
  done
  return 1
}
