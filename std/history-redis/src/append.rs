//! Appends, and saves of a state.

use epitome_core::{Head, Revision, Seq};
use epitome_history::kernel::{
    self, Attempt, Changes, Counters, Decision, Facts, Insert, Needs, NewKeptState, Op,
};
use epitome_history::rules::{Anchor, corrupt, invalid};
use epitome_history::{Append, NewState, StateRevision, StoreError};
use uuid::Uuid;

use super::keys::Key;
use super::member::{Member, Place, Receipt};
use super::script::{Args, Call, SCRIPTS};
use super::survey::Survey;
use super::{read, row};

/// Answer of the script: whether it has written, the head, the revision, the receipt of the token, the groups of the
/// anchors, the hidden calls, and the revision of the state.
pub(super) type Found =
    (String, Option<u64>, Option<u64>, String, Vec<String>, Vec<(String, String)>, String);

impl Survey<'_> {
    /// At first the server is not asked. The facts are assumed: the session is at the expected head, the joined groups
    /// are visible, as nearly all are, and the state is the one from which the new state was made. The script checks
    /// these assumptions and writes, so that one request is enough.
    pub(super) async fn append_facts(
        &mut self,
        needs: &Needs<'_>,
        facts: &mut Facts,
        is_first: bool,
    ) -> Result<(), StoreError> {
        let op = self.job.op();
        let Op::Append(append, new) = op else { return Ok(()) };
        if is_first && append.head <= HEAD_MAX {
            self.assume(append, new, needs, facts);
            // A refusal must rest on the stored facts: first on a known token, then on the head.
            if matches!(kernel::decide(&op, facts), Ok(Decision::Change(..))) {
                return Ok(());
            }
            *facts = Facts::default();
        }
        let found = match self.found.take() {
            Some(found) => found,
            None => self.call_append(self.append_args(append, needs, None)?).await?,
        };
        self.take_in(found, needs, facts)
    }

    fn assume(
        &mut self,
        append: Append<'_>,
        new: Option<NewState<'_>>,
        needs: &Needs<'_>,
        facts: &mut Facts,
    ) {
        self.counters = Counters { head: append.head, ..Counters::default() };
        self.state = new.map(|new| new.made_from).unwrap_or_default();
        self.anchors =
            needs.anchors.iter().map(|seq| (*seq, Anchor { anchor: *seq, hidden_by: None })).collect();
        facts.session = Some(self.counters);
        facts.state = self.state;
        facts.anchors.clone_from(&self.anchors);
    }

    fn take_in(&mut self, found: Found, needs: &Needs<'_>, facts: &mut Facts) -> Result<(), StoreError> {
        let (_, head, revision, seen, places, open, state) = found;
        let session = head.zip(revision);
        facts.session = session.map(|(head, revision)| Counters {
            head: Seq(head),
            revision: Revision(revision),
            ..Counters::default()
        });
        self.counters = facts.session.unwrap_or_default();
        if !seen.is_empty() {
            let receipt = Receipt::parse(&seen)?;
            let said = receipt.compared(&self.job.digest);
            facts.receipt = Some(kernel::Receipt { appended: receipt.appended, said });
        }
        for (seq, place) in needs.anchors.iter().zip(&places).filter(|(_, place)| !place.is_empty()) {
            facts.anchors.push((*seq, Place::parse(place)?.anchor()));
        }
        self.anchors.clone_from(&facts.anchors);
        facts.calls = Some(row::read_open(&open)?);
        let unread = |_| corrupt("append: the revision of the state is no number");
        facts.state = StateRevision(state.parse().map_err(unread)?);
        self.state = facts.state;
        Ok(())
    }

    /// Reads the facts for an append at the end of the session, after the appends of other writers.
    pub(super) async fn place_facts(
        &mut self,
        needs: &Needs<'_>,
        facts: &mut Facts,
    ) -> Result<Attempt, StoreError> {
        if let Some(extent) = needs.projection {
            let loaded = read::load(self.store, &self.job.keys, extent).await?.into_loaded()?;
            if (loaded.head, loaded.revision) != (self.counters.head, self.counters.revision) {
                return Ok(Attempt::Moved);
            }
            facts.projection = Some((extent, loaded.of(extent)));
        }
        if !needs.anchors.is_empty() {
            let mut command = ::redis::cmd("HMGET");
            command.arg(self.job.keys.one(Key::Places));
            for seq in &needs.anchors {
                command.arg(seq.to_string());
            }
            let places: Vec<Option<String>> = self.store.connections.ask("append", &command).await?;
            for (seq, place) in needs.anchors.iter().zip(&places) {
                let place = place.as_deref().map(Place::parse).transpose()?;
                facts.anchors.extend(place.map(|place| (*seq, place.anchor())));
            }
            self.anchors.clone_from(&facts.anchors);
        }
        Ok(Attempt::Done)
    }

    async fn call_append(&self, args: Args) -> Result<Found, StoreError> {
        let call = Call { script: &SCRIPTS.append, keys: &self.job.keys, args };
        self.store.connections.call("append", &call).await
    }

    /// The arguments of the script, with the values to write.
    fn append_args(
        &self,
        append: Append<'_>,
        needs: &Needs<'_>,
        write: Option<(&Changes<'_>, &Insert<'_>)>,
    ) -> Result<Args, StoreError> {
        let (first, end) = match write {
            Some((_, insert)) => (insert.appended.first, insert.appended.head),
            None => (append.head, append.head),
        };
        let moves = write.is_some_and(|(changes, _)| changes.after.revision != self.counters.revision);
        let has_state = matches!(self.job.op(), Op::Append(_, Some(_)));
        let new = write.and_then(|(changes, _)| changes.state);
        let mut args = Args::of([
            self.job.session.as_str().to_owned(),
            Uuid::new_v4().simple().to_string(),
            self.store.ttl.clone(),
            append.token.as_str().to_owned(),
            first.to_string(),
            end.to_string(),
            Receipt::beginning(&self.job.digest, first, end),
            append.time.map(|time| time.0.to_string()).unwrap_or_default(),
            u8::from(moves).to_string(),
            u8::from(write.is_some()).to_string(),
            if has_state { self.state.to_string() } else { String::new() },
            new.map(|new| new.revision.to_string()).unwrap_or_default(),
            new.map(|new| new.text.to_owned()).unwrap_or_default(),
        ]);
        match write {
            Some((changes, insert)) => {
                let joins = |seq: &Seq| insert.entries.iter().any(|entry| entry.anchor == *seq);
                let expected = self.anchors.iter().filter(|(seq, _)| joins(seq));
                args.list(expected.flat_map(|(seq, anchor)| [seq.to_string(), Place::beginning(*anchor)]));
                self.write(changes, insert, &mut args)?;
            }
            None => args.list(needs.anchors.iter().flat_map(|seq| [seq.to_string(), String::new()])),
        }
        Ok(args)
    }

    fn write(&self, changes: &Changes<'_>, insert: &Insert<'_>, args: &mut Args) -> Result<(), StoreError> {
        // The counters come first, because only they can fail on the stored values.
        let count =
            |name: &str, after: u64, before: u64| [name.to_owned(), after.saturating_sub(before).to_string()];
        let (before, after) = (self.counters, changes.after);
        let messages = count("live_messages", after.live_messages, before.live_messages);
        args.command(Key::Session, "HINCRBY", messages);
        args.command(Key::Session, "HINCRBY", count("live_tokens", after.live_tokens, before.live_tokens));
        let mut rows = Vec::new();
        for ((seq, entry, _), body) in insert.placed().zip(&self.job.texts.messages) {
            rows.extend([seq.to_string(), row::message(entry, body)?]);
        }
        args.command(Key::Log, "HSET", rows);
        let places = insert.placed().flat_map(|(seq, entry, hidden_by)| {
            let place = Place { anchor: entry.anchor, hidden_by, turn: entry.turn };
            [seq.to_string(), place.to_string()]
        });
        args.command(Key::Places, "HSET", places);
        let members = |is_hidden: bool| {
            let placed = insert.placed().filter(|(_, entry, _)| !entry.orphan);
            let placed = placed.filter(move |(.., hidden_by)| hidden_by.is_some() == is_hidden);
            placed.flat_map(|(seq, entry, hidden_by)| {
                let score = hidden_by.map_or(seq.0, |revision| revision.0);
                [score.to_string(), Member::of(seq, entry).to_string()]
            })
        };
        args.command(Key::Live, "ZADD", members(false));
        args.command(Key::Hidden, "ZADD", members(true));
        args.command(Key::Open, "HDEL", changes.answered.iter().map(|place| row::open_field(*place)));
        let (first, token) = (insert.appended.first.to_string(), insert.token.as_str().to_owned());
        args.command(Key::Appends, "ZADD", [first, token]);
        Ok(())
    }

    /// Appends, if the facts of the decision still hold.
    pub(super) async fn append(
        &mut self,
        changes: &Changes<'_>,
        insert: &Insert<'_>,
    ) -> Result<Attempt, StoreError> {
        let op = self.job.op();
        let Op::Append(append, _) = op else { return Ok(Attempt::Moved) };
        if insert.appended.first > HEAD_MAX {
            return Err(invalid("append: no session has so many messages"));
        }
        let args = self.append_args(append, &Needs::default(), Some((changes, insert)))?;
        let found = self.call_append(args).await?;
        if let ("done", Some(revision)) = (found.0.as_str(), found.2) {
            return Ok(Attempt::DoneAt(Revision(revision)));
        }
        // The groups in the answer are those of the anchors that were sent.
        self.found = Some(found).filter(|_| !self.is_placed_anew);
        Ok(Attempt::Moved)
    }

    /// Saves a state without an append, if the state before it is still the current one.
    pub(super) async fn save_state(&self, new: NewKeptState<'_>) -> Result<Attempt, StoreError> {
        let (known, revision) = (self.state.to_string(), new.revision.to_string());
        let args = Args::of([self.store.ttl.clone(), known, revision, new.text.to_owned()]);
        let call = Call { script: &SCRIPTS.save_state, keys: &self.job.keys, args };
        let done: bool = self.store.connections.call("save_state", &call).await?;
        Ok(if done { Attempt::Done } else { Attempt::Moved })
    }
}

/// The maximum head: Redis uses floating-point numbers, which are exact up to here.
const HEAD_MAX: Head = Seq(1 << 52);
