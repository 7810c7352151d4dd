//! Operations of every store over the contract: export, import, copy, verify, fork, expand.

mod forged;
mod interrupted;

use epitome_core::{Revision, Seq};
use epitome_std::history::StoreErrorKind::{Conflict, Invalid, NotFound, Pruned, Unsupported};
use epitome_std::history::{
    Append, AppendToken, HistoryStore, HistoryStoreExt, Loaded, LogPage, MemoryStore, NewState, SessionId,
    StateRevision, StoreError, Timestamp, check_export,
};
use epitome_std::message::Message;
use futures::executor::block_on;

use crate::faults::{Broken, Fault};
use crate::support::{
    answer, append, calls, commit, edit, edited, fails, fill, keys, late, prune, record, session, summarized,
    unanswered, uncompact, user,
};

on_every_store! {
    a_copy_is_the_same_in_everything,
    a_copy_has_its_summaries_pruned_where_they_were,
    an_export_is_the_same_in_everything,
    nothing_is_imported_over_another_session,
    a_copy_that_went_on_is_not_touched,
    other_words_at_the_same_places_are_another_session,
    what_went_on_is_not_what_was_exported,
    a_fork_that_would_show_a_pruned_summary_is_refused,
    another_state_is_another_session,
    what_was_imported_goes_on_with_its_state,
    a_state_for_a_store_that_keeps_none_is_refused_at_once,
    a_session_without_a_state_is_exported_as_before,
    a_damaged_export_is_noticed,
    a_session_that_was_used_verifies,
    a_fork_shows_what_was_shown_then,
    a_fork_leaves_out_what_was_undone,
    a_fork_keeps_what_is_pruned_hidden,
    a_fork_to_where_something_was_pruned_is_refused,
    a_fork_is_of_a_session_and_makes_a_new_one,
    an_expansion_gives_what_was_hidden_page_by_page,
    an_expansion_gives_late_answers_and_shortened_messages,
    an_expansion_of_what_was_undone_is_empty,
}

fn named(name: &str) -> SessionId {
    SessionId::new(name)
}

/// The whole content of a session except its name.
pub(crate) fn whole(store: &dyn HistoryStore, id: &SessionId) -> impl PartialEq + core::fmt::Debug + use<> {
    block_on(async {
        let log = store.log(id, Seq(0)..Seq(u64::MAX), u32::MAX).await.unwrap();
        let (records, prunes) = (
            store.records(id, None, u32::MAX).await.unwrap(),
            store.prunes(id, None, u32::MAX).await.unwrap(),
        );
        let appends = store.appends(id, Seq(0), u32::MAX).await.unwrap();
        let mut info = store.list(None, 99).await.unwrap().into_iter().find(|info| info.id == *id).unwrap();
        info.id = SessionId::new("");
        let state = store.state(id).await.unwrap().map(|kept| kept.text);
        (store.load(id).await.unwrap(), log, records, prunes, appends, info, state)
    })
}

/// A session after every kind of operation.
fn eventful(store: &dyn HistoryStore) {
    let entries = [user(0), calls(1, &["a", "b"]), answer(1, "a"), user(3)];
    let token = AppendToken::new("first");
    let first = Append::new(&token, Seq(0), &entries).at(Some(Timestamp(1_000)));
    block_on(store.append(&session(), &first)).unwrap();
    commit(store, &edited(record(0, 4, &[]), &[edit(0, &[(0, Some("[short]"))], 3)])).unwrap();
    let mut gone = summarized(record(1, 4, &[(0, 2)]), &[&[(0, 2)]]);
    gone.unanswered = vec![unanswered("b", 1, 1)];
    commit(store, &gone).unwrap();
    append(store, "late", 4, &[late(answer(1, "b")), user(5)]).unwrap();
    prune(store, 2).unwrap();
    append(store, "more", 6, &[user(6), user(7)]).unwrap();
    commit(store, &record(4, 8, &[(5, 5)])).unwrap();
    uncompact(store, 5).unwrap();
    commit(store, &record(6, 8, &[(6, 6)])).unwrap();
    save_state(store, &session(), 0, "remembered").unwrap();
    save_state(store, &session(), 1, "remembered since").unwrap();
}

fn save_state(
    store: &dyn HistoryStore,
    session: &SessionId,
    made_from: u64,
    text: &str,
) -> Result<StateRevision, StoreError> {
    block_on(store.save_state(session, &NewState::new(StateRevision(made_from), text)))
}

fn exported(store: &dyn HistoryStore) -> Vec<u8> {
    let mut file = Vec::new();
    block_on(store.export(&session(), &mut file)).unwrap();
    file
}

fn import(store: &dyn HistoryStore, name: &str, file: &[u8]) -> Result<(), StoreError> {
    block_on(store.import(&named(name), &mut &file[..])).map(|_| ())
}

fn a_copy_is_the_same_in_everything(store: &dyn HistoryStore) {
    eventful(store);
    let other = MemoryStore::new();
    let done = block_on(store.copy(&session(), &other, &named("copy"))).unwrap();
    assert_eq!((done.head, done.revision, done.appends, done.records), (Seq(8), Revision(7), 3, 4));
    assert_eq!(whole(&other, &named("copy")), whole(store, &session()));
    // And back, next to the original session.
    block_on(other.copy(&named("copy"), store, &named("back"))).unwrap();
    assert_eq!(whole(store, &named("back")), whole(store, &session()));
}

fn a_copy_has_its_summaries_pruned_where_they_were(store: &dyn HistoryStore) {
    fill(store, 6);
    commit(store, &summarized(record(0, 6, &[(0, 1)]), &[&[(0, 1)]])).unwrap();
    commit(store, &summarized(record(1, 6, &[(0, 3)]), &[&[(0, 3)]])).unwrap();
    assert_eq!(prune(store, 2).unwrap().summaries, 1);
    commit(store, &record(3, 6, &[(0, 3)])).unwrap();
    assert_eq!(prune(store, 4).unwrap().summaries, 1);
    block_on(store.verify(&session())).unwrap();
    import(store, "again", &exported(store)).unwrap();
    assert_eq!(whole(store, &named("again")), whole(store, &session()));
}

fn an_export_is_the_same_in_everything(store: &dyn HistoryStore) {
    eventful(store);
    let file = exported(store);
    let checked = check_export(&mut &file[..]).unwrap();
    assert_eq!((checked.session, checked.head, checked.records), (session(), Seq(8), 4));
    import(store, "again", &file).unwrap();
    assert_eq!(whole(store, &named("again")), whole(store, &session()));
    let mut second = Vec::new();
    block_on(store.export(&named("again"), &mut second)).unwrap();
    let body =
        |file: &[u8]| file.iter().position(|byte| *byte == b'\n').map(|at| file[at..].to_vec()).unwrap();
    let lines = |file: &[u8]| String::from_utf8(body(file)).unwrap().lines().count();
    assert_eq!(lines(&second), lines(&file));
    // The copy remembers the tokens of the original too.
    let entries = [user(6), user(7)];
    let token = AppendToken::new("more");
    let again = block_on(store.append(&named("again"), &Append::new(&token, Seq(99), &entries))).unwrap();
    assert_eq!((again.first, again.head), (Seq(6), Seq(8)));
    fails(block_on(store.export(&named("nobody"), &mut Vec::new())), NotFound);
}

fn nothing_is_imported_over_another_session(store: &dyn HistoryStore) {
    eventful(store);
    let file = exported(store);
    let token = AppendToken::new("mine");
    block_on(store.append(&named("mine"), &Append::new(&token, Seq(0), &[user(0)]))).unwrap();
    let before = whole(store, &named("mine"));
    fails(import(store, "mine", &file), Conflict);
    assert_eq!(whole(store, &named("mine")), before);
    fails(block_on(store.copy(&session(), store, &named("mine"))), Conflict);
    assert_eq!(whole(store, &named("mine")), before);
}

fn a_copy_that_went_on_is_not_touched(store: &dyn HistoryStore) {
    let later: [fn(&dyn HistoryStore); 2] = [
        |store| {
            prune(store, 1).unwrap();
        },
        |store| {
            uncompact(store, 1).unwrap();
        },
    ];
    for (at, later) in later.into_iter().enumerate() {
        let copy = named(&format!("copy {at}"));
        fill(store, 4);
        commit(store, &record(0, 4, &[(0, 1)])).unwrap();
        block_on(store.copy(&session(), store, &copy)).unwrap();
        block_on(store.append(&copy, &Append::new(&AppendToken::new("theirs"), Seq(4), &[user(4)]))).unwrap();
        let before = whole(store, &copy);
        later(store);
        append(store, "ours", 4, &[user(4)]).unwrap();
        fails(block_on(store.copy(&session(), store, &copy)), Conflict);
        assert_eq!(whole(store, &copy), before);
        block_on(store.delete(&session())).unwrap();
    }
}

fn other_words_at_the_same_places_are_another_session(store: &dyn HistoryStore) {
    let first = |name: &str, entry| {
        block_on(store.append(&named(name), &Append::new(&AppendToken::new("t"), Seq(0), &[entry]))).unwrap();
    };
    first("one", user(0));
    let mut other = user(0);
    other.message = Message::user("other words");
    first("other", other);
    fails(block_on(store.copy(&named("one"), store, &named("other"))), Conflict);
    block_on(store.append(&named("one"), &Append::new(&AppendToken::new("u"), Seq(1), &[user(1)]))).unwrap();
    fails(block_on(store.copy(&named("one"), store, &named("other"))), Conflict);
    assert_eq!(block_on(store.tail(&named("other"))).unwrap().head, Seq(1));
}

fn what_went_on_is_not_what_was_exported(store: &dyn HistoryStore) {
    eventful(store);
    let file = exported(store);
    let head = block_on(store.tail(&session())).unwrap().head;
    import(store, "s", &file).unwrap();
    append(store, "still more", head.0, &[user(head.0)]).unwrap();
    let error = import(store, "s", &file).unwrap_err();
    assert!(error.kind() == Conflict && error.to_string().contains("has gone on since"), "{error}");
}

fn a_fork_that_would_show_a_pruned_summary_is_refused(store: &dyn HistoryStore) {
    fill(store, 7);
    commit(store, &summarized(record(0, 7, &[(1, 5)]), &[&[(1, 5)]])).unwrap();
    append(store, "more", 7, &[user(7), user(8)]).unwrap();
    commit(store, &record(1, 9, &[(1, 5)])).unwrap();
    block_on(store.fork(&session(), Seq(7), &named("before"))).unwrap();
    prune(store, 2).unwrap();
    fails(block_on(store.fork(&session(), Seq(7), &named("after"))), Pruned);
    block_on(store.fork(&session(), Seq(9), &named("whole"))).unwrap();
}

fn another_state_is_another_session(store: &dyn HistoryStore) {
    eventful(store);
    let file = exported(store);
    import(store, "again", &file).unwrap();
    save_state(store, &named("again"), 1, "other").unwrap();
    let before = whole(store, &named("again"));
    fails(import(store, "again", &file), Conflict);
    assert_eq!(whole(store, &named("again")), before);
    // A fork is a different session, without the state of the original.
    block_on(store.fork(&session(), Seq(8), &named("fork"))).unwrap();
    assert_eq!(block_on(store.state(&named("fork"))).unwrap(), None);
}

fn what_was_imported_goes_on_with_its_state(store: &dyn HistoryStore) {
    eventful(store);
    import(store, "again", &exported(store)).unwrap();
    let head = block_on(store.tail(&session())).unwrap().head;
    append(store, "still more", head.0, &[user(head.0)]).unwrap();
    let kept = block_on(store.state(&session())).unwrap().unwrap();
    save_state(store, &session(), kept.revision.0, "newer").unwrap();
    import(store, "again", &exported(store)).unwrap();
    assert_eq!(whole(store, &named("again")), whole(store, &session()));
}

fn a_state_for_a_store_that_keeps_none_is_refused_at_once(store: &dyn HistoryStore) {
    eventful(store);
    let other = Broken::new(Fault::KeepsNoStates);
    fails(import(&other, "again", &exported(store)), Unsupported);
    fails(block_on(store.copy(&session(), &other, &named("again"))), Unsupported);
    fails(block_on(other.tail(&named("again"))), NotFound);
}

fn a_session_without_a_state_is_exported_as_before(store: &dyn HistoryStore) {
    fill(store, 2);
    let file = String::from_utf8(exported(store)).unwrap();
    assert!(file.starts_with(r#"{"epitome_session":{"v":1,"#) && !file.contains("state"), "{file}");
    save_state(store, &session(), 0, "remembered").unwrap();
    let file = String::from_utf8(exported(store)).unwrap();
    assert!(file.starts_with(r#"{"epitome_session":{"v":2,"#), "{file}");
    let state = r#"{"state":{"revision":1,"head":2,"text":"remembered"}}"#;
    assert_eq!(file.lines().rev().nth(1), Some(state));
}

fn a_damaged_export_is_noticed(store: &dyn HistoryStore) {
    eventful(store);
    let file = String::from_utf8(exported(store)).unwrap();
    let checked = |text: &str| check_export(&mut text.as_bytes());
    for (at, line) in file.lines().enumerate() {
        let without = file.replacen(&format!("{line}\n"), "", 1);
        let error = checked(&without).unwrap_err();
        assert_eq!(error.kind(), Invalid, "line {at}: {error}");
        assert!(!error.to_string().contains("question"), "{error}");
    }
    fails(checked(""), Invalid);
    fails(checked(&format!("{file}{file}")), Invalid);
    fails(checked(&file.replacen("question 5", "question 9", 1)), Invalid);
    let state = format!("{}\n", file.lines().rev().nth(1).unwrap());
    for (file, says) in [
        (file.replacen(r#""v":2"#, r#""v":1"#, 1), "a state where none comes"),
        (file.replacen(&state, &state.repeat(2), 1), "stands behind the state"),
    ] {
        let error = checked(&file).unwrap_err();
        assert!(error.kind() == Invalid && error.to_string().contains(says), "{error}");
    }
    let newer = checked(&file.replacen(r#""v":2"#, r#""v":3"#, 1)).unwrap_err();
    assert!(newer.to_string().contains("newer version: form 3, this one reads up to 2"), "{newer}");
}

fn a_session_that_was_used_verifies(store: &dyn HistoryStore) {
    eventful(store);
    assert_eq!(block_on(store.verify(&session())).unwrap().records, 4);
    fails(block_on(store.verify(&named("nobody"))), NotFound);
}

fn loaded(store: &dyn HistoryStore, name: &str) -> Loaded {
    block_on(store.load(&named(name))).unwrap()
}

fn keys_of(store: &dyn HistoryStore, name: &str) -> Vec<u64> {
    loaded(store, name).live.iter().map(|live| live.key.0).collect()
}

fn a_fork_shows_what_was_shown_then(store: &dyn HistoryStore) {
    fill(store, 4);
    commit(store, &summarized(record(0, 4, &[(0, 1)]), &[&[(0, 1)]])).unwrap();
    let then = loaded(store, "s").live;
    append(store, "b", 4, &[user(4), user(5), user(6)]).unwrap();
    commit(store, &record(1, 7, &[(2, 5)])).unwrap();
    block_on(store.fork(&session(), Seq(4), &named("f"))).unwrap();
    let fork = loaded(store, "f");
    assert_eq!((fork.head, fork.revision, fork.live), (Seq(4), Revision(1), then));
    // In the middle of an append.
    block_on(store.fork(&session(), Seq(6), &named("g"))).unwrap();
    assert_eq!(keys_of(store, "g"), [0, 2, 3, 4, 5]);
    block_on(store.verify(&named("g"))).unwrap();
    assert_eq!(keys(store), [0, 6]);
    // The two sessions diverge.
    let (token, entries) = (AppendToken::new("own"), [user(4)]);
    block_on(store.append(&named("f"), &Append::new(&token, Seq(4), &entries))).unwrap();
    assert_eq!((keys_of(store, "f"), keys(store)), (vec![0, 2, 3, 4], vec![0, 6]));
}

fn a_fork_leaves_out_what_was_undone(store: &dyn HistoryStore) {
    fill(store, 4);
    commit(store, &record(0, 4, &[(0, 0)])).unwrap();
    uncompact(store, 1).unwrap();
    commit(store, &record(2, 4, &[(1, 1)])).unwrap();
    block_on(store.fork(&session(), Seq(4), &named("f"))).unwrap();
    assert_eq!((keys_of(store, "f"), loaded(store, "f").revision), (vec![0, 2, 3], Revision(1)));
    let found = block_on(store.records(&named("f"), None, 9)).unwrap();
    assert!(found.len() == 1 && found[0].undone_by.is_none());
}

fn a_fork_keeps_what_is_pruned_hidden(store: &dyn HistoryStore) {
    fill(store, 4);
    commit(store, &record(0, 4, &[(0, 0)])).unwrap();
    uncompact(store, 1).unwrap();
    commit(store, &record(2, 4, &[(1, 1)])).unwrap();
    prune(store, 3).unwrap();
    append(store, "more", 4, &[user(4)]).unwrap();
    block_on(store.fork(&session(), Seq(4), &named("f"))).unwrap();
    assert_eq!(keys_of(store, "f"), [0, 2, 3]);
    let log = block_on(store.log(&named("f"), Seq(0)..Seq(9), 9)).unwrap().messages;
    let pruned: Vec<_> = log.iter().map(|it| it.pruned_by.map(|by| by.0)).collect();
    assert_eq!(pruned, [None, Some(2), None, None]);
    fails(block_on(store.uncompact(&named("f"), Revision(1))), Pruned);
}

fn a_fork_to_where_something_was_pruned_is_refused(store: &dyn HistoryStore) {
    fill(store, 4);
    append(store, "more", 4, &[user(4)]).unwrap();
    commit(store, &record(0, 5, &[(0, 0)])).unwrap();
    prune(store, 1).unwrap();
    fails(block_on(store.fork(&session(), Seq(4), &named("f"))), Pruned);
    fails(block_on(store.load(&named("f"))), NotFound);
    block_on(store.fork(&session(), Seq(5), &named("f"))).unwrap();
    assert_eq!(keys_of(store, "f"), [1, 2, 3, 4]);
}

fn a_fork_is_of_a_session_and_makes_a_new_one(store: &dyn HistoryStore) {
    fails(block_on(store.fork(&session(), Seq(1), &named("f"))), NotFound);
    fill(store, 4);
    fails(block_on(store.fork(&session(), Seq(0), &named("f"))), Invalid);
    fails(block_on(store.fork(&session(), Seq(5), &named("f"))), Invalid);
    fails(block_on(store.fork(&session(), Seq(2), &session())), Conflict);
    assert_eq!(keys(store), [0, 1, 2, 3]);
}

fn numbers(page: &LogPage) -> (Vec<u64>, Option<u64>) {
    (page.messages.iter().map(|logged| logged.seq.0).collect(), page.next.map(|next| next.0))
}

fn expanded(store: &dyn HistoryStore, made: u64, from: u64, limit: u32) -> (Vec<u64>, Option<u64>) {
    numbers(&block_on(store.expand(&session(), Revision(made), Seq(from), limit)).unwrap())
}

fn an_expansion_gives_what_was_hidden_page_by_page(store: &dyn HistoryStore) {
    fill(store, 8);
    commit(store, &record(0, 8, &[(0, 0)])).unwrap();
    commit(store, &record(1, 8, &[(0, 3), (5, 6)])).unwrap();
    assert_eq!(expanded(store, 1, 0, 9), (vec![0], None));
    assert_eq!(expanded(store, 2, 0, 9), (vec![1, 2, 3, 5, 6], None));
    assert_eq!(expanded(store, 2, 0, 2), (vec![1, 2], Some(3)));
    assert_eq!(expanded(store, 2, 3, 2), (vec![3, 5], Some(6)));
    assert_eq!(expanded(store, 2, 6, 2), (vec![6], None));
    fails(block_on(store.expand(&session(), Revision(3), Seq(0), 9)), Invalid);
    fails(block_on(store.expand(&named("nobody"), Revision(1), Seq(0), 9)), NotFound);
}

fn an_expansion_gives_late_answers_and_shortened_messages(store: &dyn HistoryStore) {
    append(store, "a", 0, &[user(0), calls(1, &["a"]), user(2)]).unwrap();
    let mut gone = edited(record(0, 3, &[(1, 1)]), &[edit(2, &[(0, Some("[-]"))], 2)]);
    gone.unanswered = vec![unanswered("a", 1, 0)];
    commit(store, &gone).unwrap();
    append(store, "late", 3, &[user(3), late(answer(1, "a"))]).unwrap();
    let page = block_on(store.expand(&session(), Revision(1), Seq(0), 9)).unwrap();
    assert_eq!(numbers(&page), (vec![1, 2, 4], None));
    assert_eq!(page.messages[1].entry.message, user(2).message);
}

fn an_expansion_of_what_was_undone_is_empty(store: &dyn HistoryStore) {
    fill(store, 4);
    let shortened = [edit(2, &[(0, Some("[-]"))], 2)];
    commit(store, &edited(record(0, 4, &[(0, 0)]), &shortened)).unwrap();
    assert_eq!(expanded(store, 1, 0, 9), (vec![0, 2], None));
    uncompact(store, 1).unwrap();
    assert_eq!(expanded(store, 1, 0, 9), (vec![], None));
    commit(store, &edited(record(2, 4, &[(1, 1)]), &shortened)).unwrap();
    assert_eq!((expanded(store, 1, 0, 9), expanded(store, 3, 0, 9)), ((vec![], None), (vec![1, 2], None)));
}

/// A file does not verify if its index contradicts the operations in it.
#[cfg(feature = "sqlite")]
#[test]
fn what_does_not_follow_from_what_was_done_does_not_verify() {
    use epitome_std::history::StoreErrorKind::Corrupt;

    let damages = [
        "UPDATE messages SET hidden_by = NULL WHERE seq = 6",
        "UPDATE messages SET hidden_by = 7 WHERE seq = 7",
        "UPDATE sessions SET live_tokens = live_tokens + 1",
        "UPDATE summaries SET tokens = 9",
        "UPDATE edits SET revision = 2",
        "INSERT INTO unanswered VALUES (1, 1, 0, 1, x'61', 0)",
        "UPDATE records SET undone_by = NULL",
        "DELETE FROM records WHERE revision = 7",
    ];
    for damage in damages {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        let store = epitome_std::history::SqliteStore::open(&path).unwrap();
        eventful(&store);
        rusqlite::Connection::open(&path).unwrap().execute_batch(damage).unwrap();
        let error = block_on(store.verify(&session())).unwrap_err();
        assert!(matches!(error.kind(), Corrupt | Conflict), "{damage}: {error}");
    }
}
