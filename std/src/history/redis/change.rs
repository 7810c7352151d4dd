//! What commits, their undoing and prunes have in common: they are decided here on a survey, and done there if nothing has
//! come between.

use epitome_core::{Head, Revision, Seq, Tokens};

use super::Shared;
use super::failure::LOST;
use super::keys::{Key, SessionKeys};
use super::member::Member;
use super::row;
use super::script::{Args, Call, SCRIPTS};
use crate::history::StoreError;
use crate::history::remote::unavailable;
use crate::history::rules::{Restored, corrupt};

/// A session's counters, as they were at one moment.
#[derive(Debug)]
pub(super) struct Counters {
    pub(super) head: Head,
    pub(super) revision: Revision,
    /// Tells this life of the session from one before or after it.
    born: String,
    live_messages: u64,
    live_tokens: u64,
}

/// Counters as scripts answer them.
pub(super) type CountersReply = (u64, u64, String, u64, u64);

/// What an operation comes to.
pub(super) enum Decision<T> {
    /// This answer, and nothing is to be done.
    Answer(T),
    /// These commands, and then this answer.
    Change(Args, T),
}

impl From<CountersReply> for Counters {
    fn from((head, revision, born, live_messages, live_tokens): CountersReply) -> Self {
        Self { head: Seq(head), revision: Revision(revision), born, live_messages, live_tokens }
    }
}

impl Counters {
    /// What is visible, in the order of keys.
    pub(super) fn visible(&self, members: &[String]) -> Result<Vec<Member>, StoreError> {
        if members.len() as u64 != self.live_messages {
            return Err(corrupt(LOST));
        }
        members.iter().map(|member| Member::parse(member)).collect()
    }

    /// A change that makes the next revision, leaves so much visible, and is not done if a group of these has grown since.
    pub(super) fn change(
        &self,
        store: &Shared,
        groups: &[Seq],
        (live_messages, live_tokens): (u64, u64),
    ) -> Args {
        let mut args = Args::of([
            self.born.clone(),
            store.ttl.clone(),
            self.revision.to_string(),
            self.head.to_string(),
        ]);
        args.list(groups.iter().map(ToString::to_string));
        // Messages may have come since: what is told is the difference. Counters come first: they alone could fail on what
        // is there.
        let more = |name: &str, after: u64, before: u64| {
            [name.to_owned(), (i128::from(after) - i128::from(before)).to_string()]
        };
        args.command(Key::Session, "HINCRBY", more("live_messages", live_messages, self.live_messages));
        args.command(Key::Session, "HINCRBY", more("live_tokens", live_tokens, self.live_tokens));
        args.command(Key::Session, "HSET", ["revision".to_owned(), self.revision.next().to_string()]);
        args
    }

    /// How much is visible now.
    pub(super) const fn live(&self) -> (u64, u64) {
        (self.live_messages, self.live_tokens)
    }
}

/// Does what was decided; `None` if that is to be decided anew.
pub(super) async fn conclude<T>(
    store: &Shared,
    operation: &str,
    keys: &SessionKeys,
    decision: Decision<T>,
) -> Result<Option<T>, StoreError> {
    let (args, answer) = match decision {
        Decision::Answer(answer) => return Ok(Some(answer)),
        Decision::Change(args, answer) => (args, answer),
    };
    let done: String =
        store.connections.call(operation, &Call { script: &SCRIPTS.change, keys, args }).await?;
    match done.as_str() {
        "done" => Ok(Some(answer)),
        "moved" => Ok(None),
        _ => Err(corrupt(format!("{operation}: {LOST}"))),
    }
}

/// The error of an operation that was decided so often in vain.
pub(super) fn restless(operation: &str) -> StoreError {
    unavailable(format!("{operation}: the session changes all the time; try again"))
}

/// How often an operation is decided anew because something has come between: nearly always the second decision is a
/// conflict, or done.
pub(super) const ROUNDS_MAX: u32 = 32;

/// Lets these members stand among what `revision` hid, and their messages say so.
pub(super) fn hide(members: &[&Member], revision: Revision, args: &mut Args) {
    args.command(Key::Live, "ZREM", texts(members));
    let scored = members.iter().flat_map(|member| [revision.to_string(), member.to_string()]);
    args.command(Key::Hidden, "ZADD", scored);
    args.command(Key::Places, "HSET", places(members, Some(revision)));
}

/// Lets these members, which were hidden, be visible again.
pub(super) fn show(members: &[&Member], args: &mut Args) {
    args.command(Key::Hidden, "ZREM", texts(members));
    let scored = members.iter().flat_map(|member| [member.key().to_string(), member.to_string()]);
    args.command(Key::Live, "ZADD", scored);
    args.command(Key::Places, "HSET", places(members, None));
}

/// Lets this stand in place of the parts of visible messages, which have so many tokens then. `None` shows one as it was
/// appended.
pub(super) fn edit(
    visible: &[Member],
    edited: impl Iterator<Item = (Seq, Tokens, Option<Restored>)>,
    args: &mut Args,
) -> Result<(), StoreError> {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    let (mut rows, mut bare) = (Vec::new(), Vec::new());
    for (seq, tokens, restored) in edited {
        let at = visible.binary_search_by_key(&seq, Member::key).ok();
        let lost = || corrupt(format!("message {seq} is not visible any more"));
        let member = at.and_then(|at| visible.get(at)).ok_or_else(lost)?;
        before.push(member);
        after.extend([seq.to_string(), member.shown(tokens, restored.is_some()).to_string()]);
        match restored {
            Some(restored) => rows.extend([seq.to_string(), row::edited(&restored)?]),
            None => bare.push(seq.to_string()),
        }
    }
    args.command(Key::Live, "ZREM", texts(&before));
    args.command(Key::Live, "ZADD", after);
    args.command(Key::Edits, "HSET", rows);
    args.command(Key::Edits, "HDEL", bare);
    Ok(())
}

fn texts(members: &[&Member]) -> impl Iterator<Item = String> {
    members.iter().map(ToString::to_string)
}

fn places(members: &[&Member], hidden_by: Option<Revision>) -> impl Iterator<Item = String> {
    members
        .iter()
        .filter_map(move |member| member.place(hidden_by))
        .flat_map(|(seq, place)| [seq.to_string(), place.to_string()])
}

/// The groups of the messages among these.
pub(super) fn groups(members: &[&Member]) -> Vec<Seq> {
    let place = |member: &&Member| Some(member.place(None)?.1.anchor);
    let mut groups: Vec<Seq> = members.iter().filter_map(place).collect();
    groups.sort_unstable();
    groups.dedup();
    groups
}
