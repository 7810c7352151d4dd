//! Tests of the stores of sessions.

use std::fs;

use futures::executor::block_on;
use serde_json::json;

use super::FileSessionStore;
use crate::history::SessionId;
use crate::session::{AgentSession, SessionErrorKind};

#[test]
fn sessions_come_back_under_any_id() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileSessionStore::new(folder.path());
    let long = "l".repeat(4_000);
    let ids = [
        "session-1",
        "Session-1",
        "",
        "..",
        "../../etc/passwd",
        "a\0b",
        "caf\u{e9}",
        "cafe\u{301}",
        "nul",
        &long,
    ];
    assert!(block_on(store.list()).unwrap().is_empty());
    for id in ids {
        let mut session = AgentSession::with_id(id);
        session.state_mut().insert("id".to_owned(), id.into());
        block_on(store.save(&session)).unwrap();
    }
    for id in ids {
        let session = block_on(store.load(&SessionId::new(id))).unwrap();
        assert_eq!(session.state()["id"], json!(id));
    }
    let mut sorted: Vec<_> = ids.iter().map(|id| SessionId::new(*id)).collect();
    sorted.sort();
    assert_eq!(block_on(store.list()).unwrap(), sorted);
    assert!(block_on(store.delete(&SessionId::new(".."))).unwrap());
    assert!(!block_on(store.delete(&SessionId::new(".."))).unwrap());
    let error = block_on(store.load(&SessionId::new(".."))).unwrap_err();
    assert_eq!(error.kind(), SessionErrorKind::NotFound);
    // There is no file outside of the folder, and no partial file in it.
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    assert_eq!(fs::read_dir(folder.path().join("sessions")).unwrap().count(), ids.len() - 1);
    assert!(folder.path().join("sessions/session-1.json").exists());
}

#[test]
fn only_what_cannot_be_parsed_is_moved_aside() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileSessionStore::new(folder.path());
    let id = SessionId::new("session-1");
    fs::create_dir_all(folder.path().join("sessions")).unwrap();
    let unparsable: [&[u8]; 4] = [b"", b"{\"session_id\": \"a secr", b"\xff\xfe{}", b"secret"];
    for (at, bytes) in unparsable.into_iter().enumerate() {
        fs::write(store.path(&id), bytes).unwrap();
        let error = block_on(store.load(&id)).unwrap_err();
        assert_eq!(error.kind(), SessionErrorKind::Corrupt);
        assert!(!error.to_string().contains("secret"), "{error}");
        let aside = folder.path().join(format!("sessions/session-1.json.corrupt-{}", at + 1));
        assert_eq!(fs::read(aside).unwrap(), bytes);
        assert_eq!(block_on(store.load(&id)).unwrap_err().kind(), SessionErrorKind::NotFound);
    }
    assert!(block_on(store.list()).unwrap().is_empty());

    let unknown = [
        "{}",
        "[]",
        "{\"type\": \"workflow\", \"session_id\": \"session-1\"}",
        "{\"session_id\": \"session-1\", \"state\": {\"x\": NaN}}",
    ];
    for text in unknown {
        fs::write(store.path(&id), text).unwrap();
        assert_eq!(block_on(store.load(&id)).unwrap_err().kind(), SessionErrorKind::Invalid, "{text}");
        assert_eq!(fs::read_to_string(store.path(&id)).unwrap(), text);
    }
    block_on(store.save(&AgentSession::with_id("another"))).unwrap();
    fs::rename(store.path(&SessionId::new("another")), store.path(&id)).unwrap();
    assert_eq!(block_on(store.load(&id)).unwrap_err().kind(), SessionErrorKind::Corrupt);
    assert!(store.path(&id).exists());

    // A file of an older release is reported as such.
    let older = "{\"session_id\": \"session-1\", \"state\": {}}";
    fs::write(store.path(&id), older).unwrap();
    let error = block_on(store.load(&id)).unwrap_err();
    assert!(
        error.kind() == SessionErrorKind::Invalid && error.to_string().contains("no checksum"),
        "{error}"
    );
    assert_eq!(fs::read_to_string(store.path(&id)).unwrap(), older);

    let newer = "{\"session_id\": \"session-1\", \"version\": \"9.0\", \"state\": {\"x\": {\"type\": \"unheard_of\"}}}";
    block_on(store.save(&AgentSession::from_json(newer).unwrap())).unwrap();
    assert_eq!(block_on(store.load(&id)).unwrap().state()["x"], json!({"type": "unheard_of"}));
}

/// A damaged file is an error, and never another session. The test changes every byte of a session's file, once by one
/// bit and once to another character.
#[test]
fn a_damaged_file_is_an_error_and_never_another_session() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileSessionStore::new(folder.path());
    let mut session = AgentSession::with_id("session-1");
    session.state_mut().insert("said".to_owned(), json!(["one", 2, {"three": [true, null]}, "\"}"]));
    block_on(store.save(&session)).unwrap();
    let (path, id) = (store.path(session.session_id()), session.session_id());
    let whole = fs::read(&path).unwrap();
    for at in 0..whole.len() {
        for change in [1, 2, 4, 16, 32] {
            let mut damaged = whole.clone();
            damaged[at] ^= change;
            fs::write(&path, &damaged).unwrap();
            let error = block_on(store.load(id)).unwrap_err();
            let kind = error.kind();
            assert!(matches!(kind, SessionErrorKind::Corrupt | SessionErrorKind::Invalid), "{at}: {error}");
        }
        fs::write(&path, &whole[..at]).unwrap();
        assert!(block_on(store.load(id)).is_err(), "cut at {at}");
    }
    fs::write(&path, &whole).unwrap();
    assert_eq!(block_on(store.load(id)).unwrap().to_dict().unwrap(), session.to_dict().unwrap());
}

#[test]
fn a_dropped_save_leaves_a_whole_session() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileSessionStore::new(folder.path());
    let mut session = AgentSession::with_id("s");
    block_on(store.save(&session)).unwrap();
    session.state_mut().insert("big".to_owned(), "x".repeat(1_000_000).into());
    for _ in 0..20 {
        let save = store.save(&session);
        assert!(futures::FutureExt::now_or_never(save).is_none_or(|saved| saved.is_ok()));
        let length = block_on(store.load(session.session_id())).unwrap().state().len();
        assert!(length <= 1);
    }
}
