//! A server that is killed during writes to a session, and restarted with the remaining data.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::sync::Arc;
use std::thread;

use epitome_conformance::fixtures::{record, user};
use epitome_core::{Revision, Seq};
use epitome_std::history::{
    Append, AppendToken, Appended, HistoryStore, RemoteOptions, SessionId, StoreError,
};
use futures::executor::block_on;

use crate::remote::patient;

/// A server for one test only.
pub(crate) trait Killable {
    /// Kills all processes of the server.
    fn kill(&mut self);

    /// Starts the server again, and waits until it answers.
    fn start(&mut self);

    /// A store on this server.
    fn store(&self, remote: RemoteOptions) -> Arc<dyn HistoryStore>;
}

/// Head and revision that the server has acknowledged.
#[derive(Clone, Copy, Default)]
struct Acknowledged {
    head: u64,
    revision: u64,
}

fn session() -> SessionId {
    SessionId::new("s")
}

fn append(store: &dyn HistoryStore, head: u64) -> Result<Appended, StoreError> {
    let token = AppendToken::new(format!("token {head}"));
    block_on(store.append(&session(), &Append::new(&token, Seq(head), &[user(head)])))
}

/// Hides three of the last four messages.
fn hide(store: &dyn HistoryStore, said: Acknowledged) -> Result<Revision, StoreError> {
    let hides = (said.head - 4, said.head - 2);
    block_on(store.commit(&session(), &record(said.revision, said.head, &[hides])))
}

/// Appends, and hides messages that were appended before, until the server is gone. Each request is sent once.
fn write(store: &dyn HistoryStore, from: Acknowledged, writing: &AtomicBool) -> Acknowledged {
    let mut said = from;
    loop {
        let Ok(appended) = append(store, said.head) else { break };
        said.head = appended.head.0;
        writing.store(true, Ordering::SeqCst);
        if said.head.is_multiple_of(4) {
            let Ok(revision) = hide(store, said) else { break };
            said.revision = revision.0;
        }
    }
    said
}

/// Kills the server this many times, each time a little later after the first write, and checks its data after the
/// restart.
pub(crate) fn keeps_what_it_acknowledged(server: &mut impl Killable, kills: u32, later: Duration) {
    let (mut said, mut acknowledged) = (Acknowledged::default(), 0);
    for kill in 0..kills {
        let (store, writing, before) =
            (server.store(patient().with_retries(0)), AtomicBool::new(false), said);
        said = thread::scope(|scope| {
            let writer = scope.spawn(|| write(&*store, said, &writing));
            while !writing.load(Ordering::SeqCst) && !writer.is_finished() {
                thread::yield_now();
            }
            thread::park_timeout(later * kill);
            server.kill();
            writer.join().unwrap()
        });
        drop(store);
        acknowledged += said.head - before.head + said.revision - before.revision;
        server.start();
        let store = server.store(patient());
        said = found(&*store, said);
    }
    assert!(said.revision >= 1, "nothing was compacted in {} messages", said.head);
    println!("{acknowledged} writes were acknowledged before {kills} kills");
    assert!(acknowledged >= u64::from(kills));
}

/// Content of the store: all acknowledged changes, and each change whole. Repeats the appends without an answer.
fn found(store: &dyn HistoryStore, said: Acknowledged) -> Acknowledged {
    let loaded = block_on(store.load(&session())).unwrap();
    // The request in progress may be stored too: one append, or one compaction.
    let (head, revision) = (loaded.head.0, loaded.revision.0);
    let unsaid = (head - said.head, revision - said.revision);
    assert!(
        [(0, 0), (1, 0), (0, 1)].contains(&unsaid),
        "{head} {revision} of {} {}",
        said.head,
        said.revision
    );
    // Each change is whole: a compaction hides three of four messages.
    assert_eq!(loaded.live.len() as u64, head - 3 * revision);
    let log = block_on(store.log(&session(), Seq(0)..Seq(u64::MAX), u32::MAX)).unwrap();
    assert_eq!(log.messages.len() as u64, head);
    let hidden = log.messages.iter().filter(|logged| logged.hidden_by.is_some()).count();
    assert_eq!(hidden as u64, 3 * revision);
    assert_eq!(block_on(store.records(&session(), None, u32::MAX)).unwrap().len() as u64, revision);
    let again = append(store, said.head).unwrap();
    assert_eq!(again.head.0, said.head + 1);
    let mut said = Acknowledged { head: again.head.0, revision };
    // A due compaction that is missing is made now, so that the next one begins at the same place.
    if said.head.is_multiple_of(4) && revision * 4 < said.head {
        said.revision = hide(store, said).unwrap().0;
    }
    said
}
