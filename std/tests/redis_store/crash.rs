//! A server that is killed while a session is written to, and started again on what it has left.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::thread;

use epitome_core::attribution::SeqRange;
use epitome_core::{Revision, Seq};
use epitome_std::history::{CompactionRecord, HistoryStore, RedisOptions, RedisStore, RemoteOptions};
use futures::executor::block_on;
use tempfile::TempDir;

use crate::server::{append, pause, session, url};

/// A server of its own, whose acknowledged writes are on the disk.
struct Server {
    folder: TempDir,
    port: u16,
    process: Child,
}

impl Server {
    /// None where there is no server to be had.
    fn start() -> Option<Self> {
        url()?;
        let folder = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let process = Self::run(&folder, port)?;
        Some(Self { folder, port, process })
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

    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    fn store(&self) -> RedisStore {
        // It takes a moment to start.
        let remote = RemoteOptions::default().with_retries(8);
        let options = RedisOptions::default().with_remote(remote);
        RedisStore::open(&format!("redis://127.0.0.1:{}", self.port), options).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What was acknowledged.
#[derive(Clone, Copy, Default)]
struct Acknowledged {
    head: u64,
    revision: u64,
}

/// Appends, and hides what was appended before, until the server is gone. Everything is sent once.
fn write(server: &str, from: Acknowledged, hurry: &AtomicBool) -> Acknowledged {
    let once = RemoteOptions::default().with_retries(0);
    let store = RedisStore::open(server, RedisOptions::default().with_remote(once)).unwrap();
    let mut said = from;
    loop {
        let Ok(appended) = append(&store, &format!("token {}", said.head), said.head) else { break };
        said.head = appended.head.0;
        hurry.store(true, Ordering::SeqCst);
        if said.head.is_multiple_of(4) {
            let mut record = CompactionRecord::new(Revision(said.revision), Seq(said.head));
            record.hides = vec![SeqRange { first: Seq(said.head - 4), last: Seq(said.head - 2) }];
            let Ok(revision) = block_on(store.commit(&session(), &record)) else { break };
            said.revision = revision.0;
        }
    }
    said
}

#[test]
fn what_was_acknowledged_is_there_after_the_server_was_killed() {
    let Some(mut server) = Server::start() else { return };
    let mut said = Acknowledged::default();
    drop(server.store());
    for round in 0..12_u64 {
        let (url, writing) = (format!("redis://127.0.0.1:{}", server.port), AtomicBool::new(false));
        said = thread::scope(|scope| {
            let writer = scope.spawn(|| write(&url, said, &writing));
            while !writing.load(Ordering::SeqCst) && !writer.is_finished() {
                thread::yield_now();
            }
            pause(Duration::from_micros(round * 700));
            server.kill();
            writer.join().unwrap()
        });
        server.process = Server::run(&server.folder, server.port).unwrap();
        let store = server.store();
        let loaded = block_on(store.load(&session())).unwrap();
        // What was on its way may be there too: one append, or one compaction.
        let (head, revision) = (loaded.head.0, loaded.revision.0);
        assert!(head == said.head || head == said.head + 1, "{head} of {}", said.head);
        assert!(
            revision == said.revision || revision == said.revision + 1,
            "{revision} of {}",
            said.revision
        );
        // Each is there whole: of four messages a compaction hides three.
        assert_eq!(loaded.live.len() as u64, head - 3 * revision);
        let log = block_on(store.log(&session(), Seq(0)..Seq(u64::MAX), u32::MAX)).unwrap();
        assert_eq!(log.messages.len() as u64, head);
        let hidden = log.messages.iter().filter(|logged| logged.hidden_by.is_some()).count();
        assert_eq!(hidden as u64, 3 * revision);
        assert_eq!(block_on(store.records(&session(), None, u32::MAX)).unwrap().len() as u64, revision);
        // What was said without an answer may be said again.
        let again = append(&store, &format!("token {}", said.head), said.head).unwrap();
        assert_eq!(again.head.0, said.head + 1);
        said = Acknowledged { head: again.head.0, revision };
        if said.head.is_multiple_of(4) && revision * 4 < said.head {
            // The next compaction begins where this one would have been.
            said.head = append(&store, &format!("token {}", said.head), said.head).unwrap().head.0;
        }
    }
    assert!(said.revision >= 1, "nothing was compacted in {} messages", said.head);
}

#[test]
fn a_server_that_was_started_again_is_found_whatever_connections_there_were() {
    let Some(mut server) = Server::start() else { return };
    drop(server.store());
    let url = format!("redis://127.0.0.1:{}", server.port);
    let store = RedisStore::open(&url, RedisOptions::default()).unwrap();
    append(&store, "first", 0).unwrap();
    // All its connections are made then, and none of them works any more.
    for _ in 0..20 {
        block_on(store.load(&session())).unwrap();
    }
    server.kill();
    server.process = Server::run(&server.folder, server.port).unwrap();
    drop(server.store());
    assert_eq!(append(&store, "second", 1).unwrap().head, Seq(2));
}
