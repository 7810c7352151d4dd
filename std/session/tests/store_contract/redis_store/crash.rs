//! A server that is killed during writes to a session, and restarted with the remaining data.

use core::time::Duration;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use epitome_core::Seq;
use epitome_std::history::{HistoryStore, RedisOptions, RedisStore, RemoteOptions};
use futures::executor::block_on;
use tempfile::TempDir;

use super::server::{append, pause, session, url};
use crate::killed_server::{Killable, keeps_what_it_acknowledged};
use crate::remote::{patient, port};

/// A server for this test only, with acknowledged writes on the disk.
struct Server {
    folder: TempDir,
    port: u16,
    process: Child,
}

impl Server {
    /// `None` if no server is available.
    fn start_new() -> Option<Self> {
        url()?;
        let folder = tempfile::tempdir().unwrap();
        let port = port();
        let process = Self::run(&folder, port)?;
        let mut server = Self { folder, port, process };
        server.until_it_answers();
        Some(server)
    }

    fn run(folder: &TempDir, port: u16) -> Option<Child> {
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", ""]);
        command.args(["--appendonly", "yes", "--appendfsync", "always", "--dir"]).arg(folder.path());
        let started = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        if started.is_err() {
            eprintln!("skipped: redis-server is not installed here");
        }
        started.ok()
    }

    fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    fn until_it_answers(&mut self) {
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(self.process.try_wait().unwrap().is_none(), "the server has ended");
            pause(Duration::from_millis(5));
        }
        // The server may have to read its file first.
        drop(self.store(patient().with_retries(8)));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Killable for Server {
    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    fn start(&mut self) {
        self.process = Self::run(&self.folder, self.port).unwrap();
        self.until_it_answers();
    }

    fn store(&self, remote: RemoteOptions) -> Arc<dyn HistoryStore> {
        let options = RedisOptions::default().with_remote(remote);
        Arc::new(RedisStore::open(&self.url(), options).unwrap())
    }
}

#[test]
fn what_was_acknowledged_is_there_after_the_server_was_killed() {
    let Some(mut server) = Server::start_new() else { return };
    keeps_what_it_acknowledged(&mut server, 12, Duration::from_micros(700));
}

#[test]
fn a_server_that_was_started_again_is_found_whatever_connections_there_were() {
    let Some(mut server) = Server::start_new() else { return };
    let store = server.store(patient());
    append(&*store, "first", 0).unwrap();
    // After these loads the store has all its connections. After the kill none of them works.
    for _ in 0..20 {
        block_on(store.load(&session())).unwrap();
    }
    server.kill();
    server.start();
    assert_eq!(append(&*store, "second", 1).unwrap().head, Seq(2));
}
