//! Files that end too early, and files with changed contents.

use std::fs;
use std::path::{Path, PathBuf};

use epitome_core::Seq;
use epitome_std::history::{
    Append, AppendToken, CompactionRecord, Entry, HistoryStore, HistoryStoreExt as _, JsonlStore, Loaded,
    LogSearch, Logged, SessionId, StoreErrorKind,
};
use futures::executor::block_on;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::quick;
use crate::support::{
    answer, append, calls, commit, edit, edited, everything, fails, late, load, log, record, session,
    summarized, unanswered, user,
};

/// A session's file after each of some writes, and the session's state at that time.
struct Written {
    open: Open,
    directory: tempfile::TempDir,
    files: Vec<Vec<u8>>,
    states: Vec<State>,
}

/// Opens a store in a directory.
type Open = fn(&Path) -> JsonlStore;

/// The stores whose files are damaged here.
const STORES: &[Open] = &[
    quick,
    #[cfg(feature = "encryption")]
    super::quick_encrypted,
];

/// State of a session, for comparisons.
type State = (Loaded, Vec<Logged>);

fn state(store: &dyn HistoryStore) -> State {
    (load(store), log(store))
}

impl Written {
    fn path(&self) -> PathBuf {
        self.directory.path().join("s.jsonl")
    }

    fn store(&self) -> JsonlStore {
        (self.open)(self.directory.path())
    }

    fn whole(&self) -> &[u8] {
        self.files.last().unwrap()
    }
}

fn written(open: Open) -> Written {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let (mut files, mut states) = (Vec::new(), Vec::new());
    for step in 0..6 {
        write(&store, step);
        files.push(fs::read(directory.path().join("s.jsonl")).unwrap());
        states.push(state(&store));
    }
    Written { open, directory, files, states }
}

/// The writes of [`written`], one after another, of every kind.
fn write(store: &dyn HistoryStore, step: u64) {
    let appends = |head: u64, entries: &[Entry]| {
        append(store, &head.to_string(), head, entries).unwrap();
    };
    let commits = |record: &CompactionRecord| {
        commit(store, record).unwrap();
    };
    match step {
        0 => appends(0, &[user(0), calls(1, &["a", "b"]), answer(1, "a")]),
        1 => appends(3, &[user(3)]),
        2 => {
            let mut record = summarized(record(0, 4, &[(0, 2)]), &[&[(0, 2)]]);
            record.unanswered = vec![unanswered("b", 1, 1)];
            commits(&record);
        }
        3 => appends(4, &[late(answer(1, "b")), user(5)]),
        4 => {
            let edits = [edit(3, &[(0, Some("[-]"))], 4)];
            commits(&edited(record(2, 6, &[]), &edits));
        }
        _ => appends(6, &[user(6)]),
    }
}

#[test]
fn an_interrupted_write_is_cut_off_wherever_it_ended() {
    // The lines of an encrypted file are longer: only every third end is tried.
    for (open, stride) in STORES.iter().zip([1, 3]) {
        interrupted(&written(*open), stride);
    }
}

fn interrupted(written: &Written, stride: usize) {
    let store = written.store();
    // A file with its first line alone has nothing to cut off, and no session.
    let header = written.files[0].iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let mut cuts = 0;
    for (step, file) in written.files.iter().enumerate() {
        let before = step.checked_sub(1).map_or(&[][..], |before| &written.files[before]);
        for end in (before.len() + 1..file.len()).step_by(stride) {
            // The end of an interrupted write; and the same in a file that was made longer first.
            let longer = [file.len() - 1 - end, file.len() - end + 100];
            for zeros in [0, longer[end % 2]] {
                let torn = [&file[..end], &vec![0; zeros][..]].concat();
                fs::write(written.path(), &torn).unwrap();
                if step == 0 {
                    fails(block_on(store.load(&session())), StoreErrorKind::NotFound);
                } else {
                    assert_eq!(
                        state(&store),
                        written.states[step - 1],
                        "step {step}, {end} bytes, {zeros} zeros"
                    );
                    assert!(fs::read(written.path()).unwrap() == before);
                }
                if torn.len() == header {
                    continue;
                }
                cuts += 1;
                let cut = store.cut_tails().pop().unwrap();
                assert_eq!((cut.session, cut.bytes), (session(), torn.len() as u64 - cut.at));
                // An interrupted write can be repeated.
                if end % 16 == 0 {
                    write(&store, step as u64);
                    assert_eq!(state(&store), written.states[step]);
                }
            }
        }
    }
    assert_eq!(store.cut_tails().len(), cuts.min(1000));
    assert!(cuts > 3_000, "{cuts}");
}

/// Opens the file as another program left it. Returns true if it is refused; its content must be `allowed`.
fn refused(store: &JsonlStore, allowed: impl Fn(&Loaded, &[Logged]) -> bool) -> bool {
    let page = |store: &JsonlStore| block_on(store.log(&session(), Seq(0)..Seq(99), 99));
    let error = match block_on(store.load(&session())) {
        Ok(loaded) => match page(store) {
            Ok(page) => {
                assert!(allowed(&loaded, &page.messages), "other data");
                return false;
            }
            Err(error) => error,
        },
        Err(error) => error,
    };
    let kind = error.kind();
    assert!(matches!(kind, StoreErrorKind::Corrupt | StoreErrorKind::NotFound), "{error}");
    let said = format!("{error} {error:?}");
    assert!(!said.contains("question") && !said.contains("answer to"), "{said}");
    true
}

#[test]
fn a_changed_byte_is_found_wherever_it_is() {
    STORES.iter().for_each(|open| changed(&written(*open)));
}

fn changed(written: &Written) {
    let (cold, warm) = (written.store(), written.store());
    let whole = written.whole();
    let all = written.states[5].clone();
    for (at, was) in whole.iter().enumerate() {
        let others = [was ^ (1 << (at / 4 % 8)), was ^ 0xff, b'\n', 0];
        // The ends of lines show interrupted writes, so more bytes are tried there.
        let tried = if *was == b'\n' { &others[..] } else { &others[at % 4..][..1] };
        for byte in tried.iter().filter(|byte| *byte != was) {
            let mut changed = whole.to_vec();
            changed[at] = *byte;
            fs::write(written.path(), &changed).unwrap();
            assert!(refused(&cold, |_, _| false), "byte {at} is {byte}");
            if at % 4 == 0 {
                // A handle that knows the file already reads only the requested parts.
                fs::write(written.path(), whole).unwrap();
                assert_eq!(state(&warm), all);
                fs::write(written.path(), &changed).unwrap();
                refused(&warm, |loaded, log| (loaded, log) == (&all.0, &all.1[..]));
            }
            assert!(fs::read(written.path()).unwrap() == changed, "left alone");
        }
    }
    fs::write(written.path(), whole).unwrap();
    assert_eq!(state(&cold), all);
    assert_eq!(cold.cut_tails(), []);
}

#[derive(Debug, Clone)]
enum Damage {
    Overwrite(u16, Vec<u8>),
    Remove(u16, u16),
    Repeat(u16, u16),
    /// Moves a line to another place.
    Move(u8, u8),
    Drop(u8),
    /// Ends the file at a byte, with this number of zeros after it.
    End(u16, u8),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        (any::<u16>(), proptest::collection::vec(any::<u8>(), 1..40))
            .prop_map(|(at, with)| Damage::Overwrite(at, with)),
        (any::<u16>(), any::<u16>()).prop_map(|(one, other)| Damage::Remove(one, other)),
        (any::<u16>(), any::<u16>()).prop_map(|(one, other)| Damage::Repeat(one, other)),
        (any::<u8>(), any::<u8>()).prop_map(|(one, other)| Damage::Move(one, other)),
        any::<u8>().prop_map(Damage::Drop),
        (any::<u16>(), any::<u8>()).prop_map(|(at, zeros)| Damage::End(at, zeros)),
    ]
}

fn inflict(damage: &Damage, file: &mut Vec<u8>) {
    let place = |at: u16, len: usize| len * usize::from(at) / 65_536;
    let between = |one, other, len| {
        let (one, other) = (place(one, len), place(other, len));
        one.min(other)..one.max(other)
    };
    let len = file.len();
    let mut lines: Vec<Vec<u8>> = file.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    match damage {
        Damage::Overwrite(at, with) => {
            let at = place(*at, len);
            let end = len.min(at + with.len());
            file.splice(at..end, with.iter().copied());
        }
        Damage::Remove(one, other) => drop(file.drain(between(*one, *other, len))),
        Damage::Repeat(one, other) => {
            let range = between(*one, *other, len);
            let again = file[range.clone()].to_vec();
            file.splice(range.end..range.end, again);
        }
        Damage::Move(one, other) => {
            let line = lines.remove(usize::from(*one) % lines.len());
            lines.insert(usize::from(*other) % (lines.len() + 1), line);
            *file = lines.concat();
        }
        Damage::Drop(one) => {
            lines.remove(usize::from(*one) % lines.len());
            *file = lines.concat();
        }
        Damage::End(at, zeros) => {
            file.truncate(place(*at, len));
            file.extend(vec![0; usize::from(*zeros)]);
        }
    }
}

/// A damaged file is refused, or equals an earlier state of the file.
#[test]
fn damage_never_makes_other_data() {
    STORES.iter().for_each(|open| damaged(&written(*open)));
}

fn damaged(written: &Written) {
    let store = written.store();
    let (refusals, cuts) = (core::cell::Cell::new(0), core::cell::Cell::new(0));
    let config = Config { cases: 400, failure_persistence: None, ..Config::default() };
    let damages = proptest::collection::vec(damage(), 1..3);
    let outcome = TestRunner::new(config).run(&damages, |damages| {
        let mut file = written.whole().to_vec();
        damages.iter().for_each(|damage| {
            if !file.is_empty() {
                inflict(damage, &mut file);
            }
        });
        // A handle that has not seen the file knows nothing of it.
        fs::remove_file(written.path()).unwrap();
        assert!(refused(&store, |_, _| false));
        fs::write(written.path(), &file).unwrap();
        let was = |loaded: &Loaded, log: &[Logged]| {
            written.states.iter().any(|state| (loaded, log) == (&state.0, &state.1[..]))
        };
        if refused(&store, was) {
            refusals.set(refusals.get() + 1);
        } else if file != written.whole() {
            // The remaining file begins as it was written, and ends with a whole write.
            let left = fs::read(written.path()).unwrap();
            prop_assert!(written.files.contains(&left));
            prop_assert!(file.starts_with(&left));
            cuts.set(cuts.get() + 1);
        }
        Ok(())
    });
    outcome.map_err(|failure| failure.to_string()).unwrap();
    println!("{} refused, {} cut", refusals.get(), cuts.get());
    assert!(refusals.get() > 100 && cuts.get() > 5);
}

#[test]
fn damage_is_named_with_its_place_and_changes_nothing() {
    let written = written(quick);
    let store = written.store();
    let mut file = written.whole().to_vec();
    let at = written.files[1].len();
    file[at + 60] ^= 1;
    fs::write(written.path(), &file).unwrap();
    let error = block_on(store.load(&session())).unwrap_err();
    assert!(error.to_string().contains(&format!("s.jsonl is damaged at byte {at}")), "{error}");
    fails(append(&store, "7", 7, &[user(7)]), StoreErrorKind::Corrupt);
    fails(commit(&store, &record(3, 7, &[(6, 6)])), StoreErrorKind::Corrupt);
    fails(block_on(store.verify(&session())), StoreErrorKind::Corrupt);
    // Another session is unchanged.
    let other = SessionId::new("t");
    let own = [user(0)];
    block_on(store.append(&other, &Append::new(&AppendToken::new("0"), Seq(0), &own))).unwrap();
    assert_eq!(block_on(store.verify(&other)).unwrap().head, Seq(1));
    // A list has both sessions. A search finds the other session, unless it is a search of the damaged one.
    let listed = block_on(store.list(None, 9)).unwrap();
    let damage = listed[0].damage.as_deref().unwrap();
    assert!(damage.contains(&format!("s.jsonl is damaged at byte {at}")), "{damage}");
    assert_eq!((listed.len(), listed[1].head, &listed[1].damage), (2, Seq(1), &None));
    let search = LogSearch::new("question");
    let found = block_on(store.search(&search)).unwrap();
    assert!(!found.is_empty() && found.iter().all(|found| found.session == other), "{found:?}");
    fails(block_on(store.search(&search.in_session(session()))), StoreErrorKind::Corrupt);
    assert!(fs::read(written.path()).unwrap() == file);
    // The repair that the error advises.
    fs::write(written.path(), &file[..at]).unwrap();
    assert_eq!(state(&store), written.states[1]);
    assert_eq!(load(&store).head, Seq(4));
    let _ = everything(&store);
}
