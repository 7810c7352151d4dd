//! Servers that refuse, disconnect or do not answer, and abandoned operations.

use core::sync::atomic::Ordering;
use core::time::Duration;

use epitome_core::attribution::SeqRange;
use epitome_core::{Revision, Seq};
use epitome_std::history::StoreErrorKind::{Conflict, Corrupt, Invalid, Unavailable};
use epitome_std::history::{
    Append, AppendToken, CompactionRecord, Entry, HistoryStore, RedisOptions, RedisStore, RemoteOptions,
    StoreError,
};
use futures::FutureExt;
use futures::executor::block_on;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};

use super::mock::{Line, Mock};
use super::server::{Room, append, fill, pause, session, user};
use crate::remote::{patient, port};

/// The error of an open, which contains no secret.
fn refused(url: &str) -> StoreError {
    refused_with(url, patient())
}

fn refused_with(url: &str, remote: RemoteOptions) -> StoreError {
    let remote = remote.with_retry_delay(Duration::from_millis(1));
    let error = RedisStore::open(url, RedisOptions::default().with_remote(remote)).unwrap_err();
    let said = format!("{error} {error:?}");
    assert!(!said.contains("hunter2") && !said.contains("user:"), "{said}");
    error
}

#[test]
fn what_a_server_answers_has_a_kind_and_no_secret() {
    let cases = [
        ("-NOPERM User user has no permissions SECRET\r\n", Invalid, 1, "may not"),
        ("-READONLY You can't write against a replica. SECRET\r\n", Unavailable, 4, "replica"),
        ("-LOADING Redis is loading the dataset SECRET\r\n", Unavailable, 4, "loading"),
        ("-OOM command not allowed SECRET\r\n", Unavailable, 4, "memory is full"),
        ("-MISCONF errors writing to disk SECRET\r\n", Unavailable, 4, "disk"),
        ("-BUSY Redis is busy running a script SECRET\r\n", Unavailable, 4, "busy"),
        (
            "-ERR Script killed by user with SCRIPT KILL. script: SECRET\r\n",
            Unavailable,
            4,
            "ended the script",
        ),
        ("-CLUSTERDOWN The cluster is down SECRET\r\n", Unavailable, 4, "rearranged"),
        ("-MOVED 1 127.0.0.1:1\r\n", Invalid, 1, "cluster"),
        ("-WRONGTYPE Operation against a key SECRET\r\n", Corrupt, 1, "another type"),
        ("-ERR unknown command with args beginning with: 'SECRET'\r\n", Invalid, 1, "refuses the command"),
        ("-ERR max number of clients reached\r\n", Unavailable, 4, "as many clients"),
        ("-SECRET is here\r\n", Unavailable, 4, "failed"),
        ("$3\r\n\u{1}\u{2}\u{3}\r\n", Corrupt, 1, "something else"),
        // No answer at all: each attempt uses all of its time.
        ("", Unavailable, 2, "did not answer"),
    ];
    // All cases run at once, because most of them wait.
    std::thread::scope(|scope| {
        for (answer, kind, tries, advice) in cases {
            scope.spawn(move || {
                let mock = Mock::new(answer);
                // A tenth of the time is for the connection.
                let short = patient().with_timeout(Duration::from_secs(4)).with_retries(1);
                let error = refused_with(&mock.url, if answer.is_empty() { short } else { patient() });
                let said = format!("{error} {error:?}");
                assert_eq!(error.kind(), kind, "{answer}: {said}");
                assert!(said.contains(advice), "{answer}: {said}");
                assert!(
                    !answer.contains(" SECRET") && !answer.contains("'SECRET") || !said.contains("SECRET"),
                    "{said}"
                );
                assert_eq!(mock.asked.load(Ordering::SeqCst), tries, "{answer}");
            });
        }
    });
}

#[test]
fn a_wrong_password_is_invalid_and_not_tried_again() {
    for answer in ["-WRONGPASS invalid username-password pair\r\n", "-NOAUTH Authentication required.\r\n"] {
        let mock = Mock::new(answer);
        let error = refused(&mock.url);
        assert_eq!(error.kind(), Invalid, "{error}");
        assert!(error.to_string().contains("refuses this name and password"), "{error}");
        assert_eq!(mock.asked.load(Ordering::SeqCst), 1);
    }
    // The same error from a real server, which expects no password.
    if let Some(room) = Room::new() {
        let error = refused(&room.url.replace("redis://", "redis://user:hunter2@"));
        assert_eq!(error.kind(), Invalid, "{error}");
    }
}

#[test]
fn a_server_that_is_not_there_is_unavailable_and_a_wrong_url_invalid() {
    let port = port();
    for scheme in ["redis", "rediss"] {
        let error = refused(&format!("{scheme}://user:hunter2@127.0.0.1:{port}"));
        assert_eq!(error.kind(), Unavailable, "{error}");
        assert!(error.to_string().ends_with("connection refused"), "{error}");
    }
    for url in ["redis:", "redis://user:hunter2@host:port", "redis://127.0.0.1/hunter2", "http://hunter2"] {
        assert_eq!(refused(url).kind(), Invalid, "{url}");
    }
    let connect = RedisStore::connect("redis://127.0.0.1", RedisOptions::default());
    assert_eq!(block_on(connect).unwrap_err().kind(), Invalid);
}

#[test]
fn who_does_not_speak_tls_is_not_taken_for_a_server_that_does() {
    let mock = Mock::new("+OK\r\n");
    assert_eq!(refused(&mock.url.replace("redis://", "rediss://")).kind(), Unavailable);
    assert_eq!(mock.asked.load(Ordering::SeqCst), 0);
}

#[test]
fn a_lost_answer_is_asked_for_again_and_nothing_is_done_twice() {
    let Some(room) = Room::new() else { return };
    let line = Line::to(&room.url);
    let store = RedisStore::open(&line.url, room.options()).unwrap();
    fill(&store, 2);
    let lose = |answers| line.loses.store(answers, Ordering::SeqCst);
    for (lost, head) in [(1, 2), (2, 3), (3, 4)] {
        lose(lost);
        let appended = append(&store, &lost.to_string(), head).unwrap();
        assert_eq!(line.loses.load(Ordering::SeqCst), 0, "nothing was lost");
        assert_eq!((appended.first, appended.head), (Seq(head), Seq(head + 1)));
    }
    let mut record = CompactionRecord::new(Revision(0), Seq(5));
    record.hides = vec![SeqRange { first: Seq(0), last: Seq(1) }];
    lose(3);
    assert_eq!(block_on(store.commit(&session(), &record)).unwrap(), Revision(1));
    lose(3);
    assert_eq!(block_on(store.uncompact(&session(), Revision(1))).unwrap(), Revision(2));
    let direct = room.store();
    let loaded = block_on(direct.load(&session())).unwrap();
    assert_eq!((loaded.head, loaded.revision, loaded.live.len()), (Seq(5), Revision(2), 5));
    // More lost answers than retries. The append was done all the same: a repetition of the call shows it.
    lose(4);
    assert_eq!(append(&store, "4", 5).unwrap_err().kind(), Unavailable);
    assert_eq!(append(&store, "4", 5).unwrap().head, Seq(6));
    assert_eq!(block_on(direct.load(&session())).unwrap().head, Seq(6));
}

#[test]
fn a_dropped_operation_is_done_whole_or_not_at_all() {
    let Some(room) = Room::new() else { return };
    let store = room.store();
    fill(&store, 1);
    let (mut head, mut done) = (1, 0);
    for round in 0..60_u64 {
        let token = AppendToken::new(format!("dropped {round}"));
        let entries: Vec<_> = (head..head + 50).map(user).collect();
        let (session, wanted) = (session(), Append::new(&token, Seq(head), &entries));
        let mut future = store.append(&session, &wanted);
        // Nothing is sent before the first poll. After it, the request is somewhere on its way.
        if round % 3 > 0 {
            let _ = (&mut future).now_or_never();
            pause(Duration::from_micros(round * 20));
        }
        drop(future);
        let there = block_on(store.load(&session)).unwrap();
        assert!([Seq(head), Seq(head + 50)].contains(&there.head), "{}", there.head);
        assert_eq!(there.live.len() as u64, there.head.0);
        // The append may take effect later. A repetition ensures that it is stored, once.
        let appended = block_on(store.append(&session, &wanted)).unwrap();
        assert_eq!((appended.first, appended.head), (Seq(head), Seq(head + 50)));
        done += u32::from(there.head != Seq(head));
        head += 50;
    }
    // A third of the operations was never polled.
    assert!(done <= 40, "{done}");
    assert_eq!(block_on(store.load(&session())).unwrap().head, Seq(head));
}

#[test]
fn connections_of_the_caller_are_used() {
    let Some(room) = Room::new() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let store = runtime.block_on(async {
        let client = redis::Client::open(room.url.as_str()).unwrap();
        let minute = Some(Duration::from_secs(60));
        let config = ConnectionManagerConfig::new();
        let config = config.set_connection_timeout(minute).set_response_timeout(minute);
        let manager = ConnectionManager::new_with_config(client, config).await.unwrap();
        let store = RedisStore::from_connection_manager(manager, room.options()).await.unwrap();
        let (token, entries) = (AppendToken::new("t"), [user(0)]);
        store.append(&session(), &Append::new(&token, Seq(0), &entries)).await.unwrap();
        let other = RedisStore::connect(&room.url, room.options()).await.unwrap();
        assert_eq!(other.load(&session()).await.unwrap().live.len(), 1);
        store
    });
    assert!(!format!("{store:?}").contains("127.0.0.1"));
    // The runtime belongs to the caller: without it, no operation works.
    drop(runtime);
    assert_eq!(block_on(store.load(&session())).unwrap_err().kind(), Unavailable);
}

#[test]
fn what_comes_between_deciding_and_doing_is_seen() {
    let Some(room) = Room::new() else { return };
    let line = Line::to(&room.url);
    let store = RedisStore::open(&line.url, room.options()).unwrap();
    // The server has every script by then, so no answer reports a missing script.
    fill(&store, 4);
    let hide = |parent: u64, head, seq| {
        let mut record = CompactionRecord::new(Revision(parent), Seq(head));
        record.hides = vec![SeqRange { first: Seq(seq), last: Seq(seq) }];
        record
    };
    block_on(store.commit(&session(), &hide(0, 4, 3))).unwrap();
    let meanwhile = |entry: Entry| {
        let other = room.store();
        *line.first.lock().unwrap() = Some(Box::new(move || {
            let head = block_on(other.load(&session())).unwrap().head;
            let token = AppendToken::new(format!("meanwhile {head}"));
            block_on(other.append(&session(), &Append::new(&token, head, &[entry]))).unwrap();
        }));
    };
    let live = || {
        let info = &block_on(store.list(None, 1)).unwrap()[0];
        let loaded = block_on(store.load(&session())).unwrap();
        assert_eq!(info.live_messages, loaded.live.len() as u64);
        assert_eq!(info.live_tokens, 10 * info.live_messages);
        (info.head.0, info.revision.0, info.live_messages)
    };
    // A message in a group of its own does not matter.
    meanwhile(user(4));
    assert_eq!(block_on(store.commit(&session(), &hide(1, 4, 0))).unwrap(), Revision(2));
    assert_eq!(live(), (5, 2, 3));
    // A further message of the group to be hidden does matter: the caller has not seen it.
    let mut joins = user(5);
    joins.anchor = Seq(1);
    meanwhile(joins);
    let error = block_on(store.commit(&session(), &hide(2, 5, 1))).unwrap_err();
    assert_eq!(error.kind(), Conflict, "{error}");
    assert_eq!(live(), (6, 2, 4));
    // The message joins a group that is hidden during the operation, and comes back with the group.
    let mut late = user(6);
    late.anchor = Seq(0);
    meanwhile(late);
    assert_eq!(block_on(store.uncompact(&session(), Revision(2))).unwrap(), Revision(3));
    assert_eq!(live(), (7, 3, 6));
    let mut late = user(7);
    late.anchor = Seq(3);
    meanwhile(late);
    let pruned = block_on(store.prune(&session(), Revision(1))).unwrap();
    assert_eq!((pruned.messages, live()), (2, (8, 4, 6)));
}
