//! Appending.

use std::collections::{BTreeMap, BTreeSet};

use epitome_core::{Head, Revision, Seq};
use uuid::Uuid;

use super::Shared;
use super::keys::{Key, SessionKeys};
use super::member::{Member, Place, Receipt};
use super::script::{Args, Call, SCRIPTS};
use super::{row, state};
use crate::history::bodies::Bodies;
use crate::history::remote::unavailable;
use crate::history::rules::{self, Anchor, Placement, corrupt};
use crate::history::{
    Append, AppendToken, Appended, Entry, NewState, OwnedState, SessionId, StateOutcome, StoreError,
    Timestamp, UnansweredCall,
};

/// An append with everything about it that can be made before it is sent.
#[derive(Debug)]
pub(super) struct AppendJob {
    session: SessionId,
    keys: SessionKeys,
    token: AppendToken,
    head: Head,
    entries: Vec<Entry>,
    time: Option<Timestamp>,
    digest: String,
    rows: Vec<String>,
    /// The groups before the head that entries join.
    anchors: BTreeSet<Seq>,
    /// What is to be kept in the same step.
    state: Option<OwnedState>,
}

/// What is known of the session while it is decided where the entries go. At first nothing is: the groups that they join
/// are taken for visible ones, as nearly all are, so that an append is one request.
#[derive(Debug, Default)]
struct Known {
    places: BTreeMap<Seq, Option<Place>>,
    open: Vec<UnansweredCall>,
}

/// What the script answers.
enum Answer {
    /// The token was there.
    Seen(Receipt),
    /// The head is another one.
    Head(Head),
    /// What was taken for known is not so; this is.
    Places(Known),
    /// All is as it was taken for, and nothing was to be written.
    Fine,
    /// It is done, and this is the revision; and what has become of the state.
    Done(Revision, Option<StateOutcome>),
}

impl AppendJob {
    pub(super) fn new(store: &Shared, session: &SessionId, append: &Append<'_>) -> Result<Self, StoreError> {
        let Append { token, head, entries, time } = *append;
        let bodies = Bodies::of(entries)?;
        let rows = entries.iter().zip(&bodies.texts).map(|(entry, body)| row::message(entry, body));
        Ok(Self {
            session: session.clone(),
            keys: store.prefix.keys(session),
            token: token.clone(),
            head,
            entries: entries.to_vec(),
            time,
            digest: bodies.digest.iter().map(|byte| format!("{byte:02x}")).collect(),
            rows: rows.collect::<Result<_, _>>()?,
            anchors: entries.iter().map(|entry| entry.anchor).filter(|anchor| *anchor < head).collect(),
            state: None,
        })
    }

    /// The same with a state.
    pub(super) fn with_state(self, state: &NewState<'_>) -> Self {
        Self { state: Some(OwnedState::of(state)), ..self }
    }

    /// What was appended, and what has become of the state that came with it.
    pub(super) async fn run(&self, store: &Shared) -> Result<(Appended, Option<StateOutcome>), StoreError> {
        let mut known = Known::default();
        for _ in 0..ROUNDS_MAX {
            // A refusal is sent too, and nothing written: the token and the head come first.
            let decided = self.decide(&known);
            let answer = store.connections.call("append", &self.call(store, &known, &decided)).await?;
            match self.answer(answer)? {
                Answer::Seen(receipt) if receipt.is_of(&self.digest) => {
                    // The append was a step of its own, long ago or just now.
                    let outcome = match &self.state {
                        Some(state) => Some(state::save(store, &self.keys, state).await?),
                        None => None,
                    };
                    return Ok((receipt.appended, outcome));
                }
                Answer::Seen(_) => return Err(rules::token_reused()),
                Answer::Head(head) => return Err(rules::head_conflict(self.head, head)),
                Answer::Places(found) => known = found,
                Answer::Fine => decided.map(|_| ())?,
                Answer::Done(revision, outcome) => {
                    return Ok((Appended::new(self.head, self.end(), revision), outcome));
                }
            }
        }
        Err(unavailable("append: the groups that it joins change all the time; try again"))
    }

    fn end(&self) -> Head {
        Seq(self.head.0.saturating_add(self.entries.len() as u64))
    }

    /// The entries with their numbers.
    fn numbered(&self) -> impl Iterator<Item = (Seq, &Entry)> {
        self.entries.iter().enumerate().map(|(at, entry)| (Seq(self.head.0.saturating_add(at as u64)), entry))
    }

    fn decide(&self, known: &Known) -> Result<Placement, StoreError> {
        if self.head > HEAD_MAX {
            return Err(rules::invalid("append: no session has so many messages"));
        }
        rules::place(self.head, &self.entries, |seq| known.anchor(seq))
    }

    fn call(&self, store: &Shared, known: &Known, decided: &Result<Placement, StoreError>) -> Call<'_> {
        let moves = decided.as_ref().is_ok_and(|placement| placement.moves_revision);
        let mut args = Args::of([
            self.session.as_str().to_owned(),
            Uuid::new_v4().simple().to_string(),
            store.ttl.clone(),
            self.token.as_str().to_owned(),
            self.head.to_string(),
            self.end().to_string(),
            Receipt::beginning(&self.digest, self.head, self.end()),
            self.time.map(|time| time.0.to_string()).unwrap_or_default(),
            u8::from(moves).to_string(),
            u8::from(decided.is_ok()).to_string(),
        ]);
        args.extend(state::texts(self.state.as_ref()));
        args.list(self.anchors.iter().flat_map(|seq| {
            let expected = known.places.get(seq).copied().flatten();
            let anchor = expected.map_or(visible(*seq), |place| place.anchor());
            [seq.to_string(), Place::beginning(anchor)]
        }));
        if let Ok(placement) = decided {
            self.write(known, placement, &mut args);
        }
        Call { script: &SCRIPTS.append, keys: &self.keys, args }
    }

    fn write(&self, known: &Known, placement: &Placement, args: &mut Args) {
        // Counters first: they alone could fail on what is there.
        let count = |name: &str, more: u64| [name.to_owned(), more.to_string()];
        args.command(Key::Session, "HINCRBY", count("live_messages", placement.live_messages));
        args.command(Key::Session, "HINCRBY", count("live_tokens", placement.live_tokens));
        let rows = self.numbered().zip(&self.rows).flat_map(|((seq, _), row)| [seq.to_string(), row.clone()]);
        args.command(Key::Log, "HSET", rows);
        let placed = || self.numbered().zip(&placement.hidden_by);
        args.command(
            Key::Places,
            "HSET",
            placed().flat_map(|((seq, entry), hidden_by)| {
                let place = Place { anchor: entry.anchor, hidden_by: *hidden_by, turn: entry.turn };
                [seq.to_string(), place.to_string()]
            }),
        );
        let members = |hidden: bool| {
            let placed = placed().filter(|((_, entry), _)| !entry.orphan);
            placed.filter(move |(_, hidden_by)| hidden_by.is_some() == hidden).flat_map(
                |((seq, entry), hidden_by)| {
                    let score = hidden_by.map_or(seq.0, |revision| revision.0);
                    [score.to_string(), Member::of(seq, entry).to_string()]
                },
            )
        };
        args.command(Key::Live, "ZADD", members(false));
        args.command(Key::Hidden, "ZADD", members(true));
        let hidden = placed().filter(|(_, hidden_by)| hidden_by.is_some()).map(|((_, entry), _)| entry);
        args.command(Key::Open, "HDEL", known.settled(hidden));
        args.command(Key::Appends, "ZADD", [self.head.to_string(), self.token.as_str().to_owned()]);
    }

    fn answer(&self, (word, text, places, open, state): Reply) -> Result<Answer, StoreError> {
        let number = || text.parse().map_err(|_| corrupt("append: a counter of the session is no number"));
        match word.as_str() {
            "seen" => Ok(Answer::Seen(Receipt::parse(&text)?)),
            "head" => Ok(Answer::Head(Seq(number()?))),
            "places" => {
                let place = |text: &String| match text.as_str() {
                    "" => Ok(None),
                    text => Place::parse(text).map(Some),
                };
                let places = places.iter().map(place).collect::<Result<Vec<_>, _>>()?;
                let places = self.anchors.iter().copied().zip(places).collect();
                Ok(Answer::Places(Known { places, open: row::read_open(&open)? }))
            }
            "fine" => Ok(Answer::Fine),
            "done" => {
                let outcome = self.state.as_ref().map(|sent| state::outcome(&state, sent)).transpose()?;
                Ok(Answer::Done(Revision(number()?), outcome))
            }
            _ => Err(corrupt("append: the script has another answer")),
        }
    }
}

/// What the script answers: a word, a text, places, hidden calls, and what has become of the state.
type Reply = (String, String, Vec<String>, Vec<(String, String)>, String);

impl Known {
    fn anchor(&self, seq: Seq) -> Result<Anchor, StoreError> {
        match self.places.get(&seq) {
            None => Ok(visible(seq)),
            Some(Some(place)) => Ok(place.anchor()),
            Some(None) => Err(corrupt("append: a message of the log is missing")),
        }
    }

    /// The fields of the hidden calls that these entries answer: of each the first with its id that is left.
    fn settled<'a>(&self, entries: impl Iterator<Item = &'a Entry>) -> Vec<String> {
        let mut open: Vec<&UnansweredCall> = self.open.iter().collect();
        entries
            .filter_map(|entry| {
                let at = open.iter().position(|call| call.is_answered_by(entry))?;
                Some(row::open_field(open.remove(at)))
            })
            .collect()
    }
}

/// A message that is the first of a group that can be seen.
const fn visible(seq: Seq) -> Anchor {
    Anchor { anchor: seq, hidden_by: None }
}

/// What was appended under a token.
pub(super) async fn find(
    store: &Shared,
    keys: &SessionKeys,
    token: &AppendToken,
) -> Result<Option<Appended>, StoreError> {
    let mut command = ::redis::cmd("HGET");
    command.arg(keys.one(Key::Receipts)).arg(token.as_str());
    let receipt: Option<String> = store.connections.ask("appended", &command).await?;
    receipt.map(|receipt| Ok(Receipt::parse(&receipt)?.appended)).transpose()
}

/// How often the groups that an append joins may change while it is on its way: each time somebody has hidden or shown
/// one of them between two requests.
const ROUNDS_MAX: u32 = 32;

/// Redis counts in floating-point numbers, exact up to here.
const HEAD_MAX: Head = Seq(1 << 52);
