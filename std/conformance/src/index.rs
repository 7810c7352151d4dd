//! Sessions for the test of an index of words. The results of the index are compared with those of a search that reads
//! every message.

use std::collections::{BTreeSet, VecDeque};

use epitome_core::attribution::SeqRange;
use epitome_core::message::Role;
use epitome_core::{Basis, Revision, Seq, Tokens, Turn};
use epitome_history::kernel::scan;
use epitome_history::{
    Append, AppendToken, CompactionRecord, Entry, HistoryStore, Live, LogSearch, SessionId, Timestamp,
    TokenCount,
};
use epitome_message::{Message, Part, ToolCall};

/// Pseudo-random numbers, the same for the same seed: xorshift.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// Makes the sequence of a seed other than 0.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `end`.
    pub const fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// A few words, some of which are rare.
fn text(dice: &mut Dice) -> String {
    let word = |dice: &mut Dice| match dice.below(4) {
        0 => format!("w{}", dice.below(5_000)),
        1 => "\u{6771}\u{4eac}".to_owned(),
        _ => format!("common{}", dice.below(9)),
    };
    (0..dice.below(6)).map(|_| word(dice)).collect::<Vec<_>>().join(" ")
}

fn message(dice: &mut Dice) -> Message {
    let text = text(dice);
    match dice.below(6) {
        0 => Message::system(text),
        1 | 2 => Message::assistant(text),
        3 => {
            // Ids are reused in other groups, and each tool is used in many.
            let calls = ["c0", "c1"].map(|id| {
                let arguments = format!("{{\"of\":\"{}\"}}", self::text(dice));
                Part::ToolCall(ToolCall::new(id, format!("tool{}", dice.below(3)), arguments))
            });
            Message::new(Role::Assistant, calls.to_vec())
        }
        _ => Message::user(text),
    }
}

/// The messages after a message in its group: some have a further call, and each call has an answer.
fn answers(message: &Message, dice: &mut Dice) -> VecDeque<Message> {
    let mut answers: VecDeque<_> = message.parts().iter().filter_map(|part| answer(part, dice)).collect();
    if !answers.is_empty() && dice.below(2) == 0 {
        // After the first answer, the call may have the id of the answered call.
        let (id, at) = [("c2", 0), ("c0", 1)][usize::from(dice.below(2) == 0)];
        let call = Part::ToolCall(ToolCall::new(id, format!("tool{}", dice.below(3)), "{}"));
        answers.extend(answer(&call, dice));
        answers.insert(at, Message::new(Role::Assistant, vec![call]));
    }
    answers
}

fn answer(part: &Part, dice: &mut Dice) -> Option<Message> {
    match part {
        Part::ToolCall(call) => Some(Message::tool(call.id.clone(), text(dice))),
        _ => None,
    }
}

/// Appends `count` messages. The time of the append is unknown, or equals the head of the session.
///
/// # Panics
/// If the store fails.
pub async fn append_some<S: HistoryStore>(store: &S, session: &SessionId, count: u64, dice: &mut Dice) {
    let loaded = store.load(session).await.ok();
    let head = loaded.as_ref().map_or(0, |loaded| loaded.head.0);
    let newest = loaded.as_ref().and_then(|loaded| loaded.live.last());
    // The next append answers some of the calls.
    let newest = newest.filter(|live| live.key.0 + 1 == head && live.key == live.entry.anchor);
    let (mut anchor, mut left) = (head.saturating_sub(1), VecDeque::new());
    if let Some(newest) = newest {
        left = answers(&newest.entry.message, dice);
    }
    let size = TokenCount::new(Tokens(1), Basis::Estimated, "test".into());
    let mut entries = Vec::new();
    for seq in head..head + count {
        let message = match left.pop_front() {
            Some(answer) => answer,
            None => {
                let message = message(dice);
                (anchor, left) = (seq, answers(&message, dice));
                message
            }
        };
        entries.push(Entry::new(message, Seq(anchor), Turn(1), size.clone()));
    }
    let token = AppendToken::new(format!("at {head}"));
    let time = (head % 3 > 0).then_some(Timestamp(head));
    store.append(session, &Append::new(&token, Seq(head), &entries).at(time)).await.unwrap();
}

/// Hides the groups of the first `count` messages that may be hidden, and prunes all hidden messages.
///
/// # Panics
/// If the store fails.
pub async fn prune_some<S: HistoryStore>(store: &S, session: &SessionId, count: usize) {
    if let Some(made) = hide_some(store, session, count).await {
        store.prune(session, made).await.unwrap();
    }
}

/// Hides the groups of the first `count` messages that may be hidden; `None` if there are none.
///
/// # Panics
/// If the store fails.
pub async fn hide_some<S: HistoryStore>(store: &S, session: &SessionId, count: usize) -> Option<Revision> {
    let loaded = store.load(session).await.ok()?;
    let mut record = CompactionRecord::new(loaded.revision, loaded.head);
    let may_go = loaded.live.iter().filter(|live| live.entry.message.role() != Role::System);
    let groups: BTreeSet<Seq> = may_go.take(count).map(|live| live.entry.anchor).collect();
    let hidden = loaded.live.iter().filter(|live| groups.contains(&live.entry.anchor));
    for Live { key, .. } in hidden {
        match record.hides.last_mut().filter(|range| range.last.0 + 1 == key.0) {
            Some(range) => range.last = *key,
            None => record.hides.push(SeqRange { first: *key, last: *key }),
        }
    }
    if record.hides.is_empty() {
        return None;
    }
    Some(store.commit(session, &record).await.unwrap())
}

/// A random change of one of three sessions: an append of up to 450 messages, a compaction, a prune, or a deletion. The
/// first session grows most.
///
/// # Panics
/// If the store fails.
pub async fn change<S: HistoryStore>(store: &S, sessions: &[SessionId; 3], dice: &mut Dice) {
    let session = match dice.below(5) {
        0 => &sessions[1],
        1 => &sessions[2],
        _ => &sessions[0],
    };
    match dice.below(16) {
        0 => drop(store.delete(session).await.unwrap()),
        1 | 2 => prune_some(store, session, usize::try_from(dice.below(300)).unwrap()).await,
        3 | 4 => drop(hide_some(store, session, usize::try_from(dice.below(300)).unwrap()).await),
        _ => {
            let count = 1 + dice.below(450);
            append_some(store, session, count, dice).await;
        }
    }
}

/// Searches with each of the possible limits. The ids of the sessions of one owner begin with `prefix`.
fn searches(words: &str, session: &SessionId, prefix: &str) -> [LogSearch; 10] {
    let all = || LogSearch::new(words).with_limit(u32::MAX);
    let one = || all().in_session(session.clone());
    [
        all(),
        all().in_sessions(prefix),
        all().of_role(Role::Assistant),
        all().in_sessions(prefix).since(Timestamp(1_000)),
        one(),
        one().of_role(Role::User).since(Timestamp(900)),
        one().in_ranges(vec![Seq(700)..Seq(u64::MAX), Seq(10)..Seq(300)]),
        one().without_hidden_by((0..1_000).map(Revision).collect()),
        all().of_tool("tool1"),
        one().of_tool("tool0").of_role(Role::Tool),
    ]
}

/// Runs all these searches, and returns the number of results.
///
/// # Panics
/// If the results differ from those of a search that reads every message, or a message is found twice.
pub async fn assert_found<S: HistoryStore>(store: &S, session: &SessionId, prefix: &str) -> usize {
    let mut count = 0;
    for words in ["w17", "\u{6771}\u{4eac}", "common1 common3 w1 w2"] {
        for search in searches(words, session, prefix) {
            let found = [store.search(&search).await.unwrap(), scan(store, &search).await.unwrap()];
            let [by_index, by_reading] = found.map(|found| {
                let count = found.len();
                let places = found.into_iter().map(|it| (it.session, it.logged.seq));
                let places: BTreeSet<_> = places.collect();
                assert_eq!(places.len(), count, "each once");
                places
            });
            let differs: Vec<_> = by_index.symmetric_difference(&by_reading).take(3).collect();
            assert!(differs.is_empty(), "{search:?}: {differs:?}");
            count += by_index.len();
        }
    }
    count
}

/// Appends one message with a rare word before thousands with a common one, and searches for both words.
///
/// # Panics
/// If the store fails, or finds another message first.
pub async fn assert_rare_first<S: HistoryStore>(store: &S, session: &SessionId) {
    let size = TokenCount::new(Tokens(1), Basis::Estimated, "test".into());
    for first in (0..7_500).step_by(500) {
        let said = |seq| if seq == 0 { "okapi zebra" } else { "zebra" };
        let entry = |seq| Entry::new(Message::user(said(seq)), Seq(seq), Turn(1), size.clone());
        let entries: Vec<Entry> = (first..first + 500).map(entry).collect();
        let token = AppendToken::new(format!("at {first}"));
        store.append(session, &Append::new(&token, Seq(first), &entries)).await.unwrap();
    }
    let search = LogSearch::new("zebra okapi").in_session(session.clone()).with_limit(3);
    let found: Vec<_> = store.search(&search).await.unwrap().iter().map(|it| it.logged.seq.0).collect();
    assert_eq!(found, [0, 1, 7_499], "the rarest first, then its neighbour, then the newest");
}

/// Appends a group with two calls of one id, one before and one after the boundary of 256 messages, and searches for
/// each of the two tools.
///
/// # Panics
/// If the store fails, or the results differ from those of a search that reads every message.
pub async fn assert_reused_id_found<S: HistoryStore>(store: &S, session: &SessionId) {
    let size = TokenCount::new(Tokens(1), Basis::Estimated, "test".into());
    let call =
        |tool: &str| Message::new(Role::Assistant, vec![Part::ToolCall(ToolCall::new("c0", tool, "{}"))]);
    let entry = |seq: u64| {
        let (message, anchor) = match seq {
            254 => (call("first_tool"), 254),
            256 => (call("second_tool"), 254),
            255 | 257 => (Message::tool("c0", "zebra"), 254),
            _ => (Message::user("zebra"), seq),
        };
        Entry::new(message, Seq(anchor), Turn(1), size.clone())
    };
    let entries: Vec<Entry> = (0..1_300).map(entry).collect();
    store.append(session, &Append::new(&AppendToken::new("all"), Seq(0), &entries)).await.unwrap();
    for (tool, expected) in [("first_tool", [255, 257].as_slice()), ("second_tool", &[257])] {
        let search = LogSearch::new("zebra").in_session(session.clone()).of_tool(tool);
        for found in [store.search(&search).await.unwrap(), scan(store, &search).await.unwrap()] {
            let found: BTreeSet<u64> = found.iter().map(|it| it.logged.seq.0).collect();
            assert!(found.iter().eq(expected), "{tool}: {found:?}");
        }
    }
}
