//! A Postgres server that is killed with all its processes during writes to a session, and restarted.

use core::time::Duration;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use epitome_std::history::{HistoryStore, PostgresOptions, PostgresStore, RemoteOptions};
use tempfile::TempDir;

use crate::killed_server::{Killable, keeps_what_it_acknowledged};
use crate::postgres_server::url;
use crate::remote::port;

/// A server for this test only.
struct Server {
    folder: TempDir,
    port: u16,
}

/// Starts a server in the folder `$1` on the port `$2`; `$0` is a script that finds the programs of a server.
const START: &str = r#"
    source "$0"
    bin=$(postgres_bin)
    if [[ ! -e $1/data ]]; then
        [[ $(id -u) -ne 0 ]] || chown postgres "$1"
        as_postgres "$bin/initdb" -D "$1/data" -U epitome -A trust -E UTF8 --locale=C.UTF-8 --no-sync
    fi
    as_postgres "$bin/pg_ctl" -D "$1/data" -l "$1/log" -w -t 300 start \
        -o "-p $2 -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=on"
"#;

/// Kills the processes of the server in the folder `$1`, and waits for their end: a restarted server may not meet one.
const KILL: &str = r#"
    first=$(head -n 1 "$1/data/postmaster.pid")
    # Stopped, it begins no process more.
    kill -STOP "$first"
    all="$first $(pgrep -P "$first")"
    kill -9 $all
    for process in $all; do
        while [[ -e /proc/$process && $(cut -d ' ' -f 3 /proc/$process/stat 2>/dev/null) != Z ]]; do sleep 0.01; done
    done
    # One that nobody has waited for looks alive to the next server, which would not start.
    rm "$1/data/postmaster.pid"
"#;

impl Server {
    /// `None` if no server is available.
    fn start_new() -> Option<Self> {
        url()?;
        let folder = tempfile::Builder::new().prefix("epitome-postgres-").tempdir().unwrap();
        let port = port();
        let mut server = Self { folder, port };
        server.start();
        Some(server)
    }

    fn run(&self, script: &str) {
        let knows = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/servers/postgres.sh");
        let mut command = Command::new("bash");
        command.args(["-euo", "pipefail", "-c", script]).arg(knows).arg(self.folder.path());
        // A started server keeps the streams that it inherits.
        command.arg(self.port.to_string()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let done = command.status().unwrap();
        let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        assert!(done.success(), "{script}\n{log}");
    }
}

impl Killable for Server {
    fn kill(&mut self) {
        self.run(KILL);
    }

    fn start(&mut self) {
        self.run(START);
    }

    fn store(&self, remote: RemoteOptions) -> Arc<dyn HistoryStore> {
        let url = format!("postgres://epitome@127.0.0.1:{}/postgres?sslmode=disable", self.port);
        Arc::new(PostgresStore::open_with(&url, PostgresOptions::default().with_remote(remote)).unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.folder.path().join("data/postmaster.pid").exists() {
            let _ = Command::new("bash").args(["-c", KILL, ""]).arg(self.folder.path()).status();
        }
    }
}

#[test]
fn what_was_acknowledged_is_there_after_the_server_was_killed() {
    let Some(mut server) = Server::start_new() else { return };
    keeps_what_it_acknowledged(&mut server, 8, Duration::from_millis(9));
}
