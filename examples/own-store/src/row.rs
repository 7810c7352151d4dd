//! The rows, and the parts of a row.

use epitome_core::{Basis, Revision, Seq, Tokens, Turn};
use epitome_history::kernel::{
    Anchor, Counters, Edited, Insert, Restored, Standing, VisibleMessage, VisibleSummary, corrupt,
    not_storable,
};
use epitome_history::{
    AppendToken, Appended, Committed, Entry, KeptState, Live, Logged, LoggedAppend, Pruned, RecordId,
    SessionId, SessionInfo, StateRevision, StoreError, Summary, Timestamp, TokenCount, UnansweredCall,
    stored,
};
use epitome_message::Message;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
pub(crate) struct SessionRow {
    pub(crate) head: u64,
    pub(crate) revision: u64,
    live_messages: u64,
    live_tokens: u64,
    created: Option<u64>,
    appended: Option<u64>,
}

impl SessionRow {
    pub(crate) fn of(counters: &Counters) -> Self {
        let Counters { head, revision, live_messages, live_tokens, created, appended } = *counters;
        let time = |time: Option<Timestamp>| time.map(|time| time.0);
        let (created, appended) = (time(created), time(appended));
        Self { head: head.0, revision: revision.0, live_messages, live_tokens, created, appended }
    }

    pub(crate) fn counters(&self) -> Counters {
        Counters {
            head: Seq(self.head),
            revision: Revision(self.revision),
            live_messages: self.live_messages,
            live_tokens: self.live_tokens,
            created: self.created.map(Timestamp),
            appended: self.appended.map(Timestamp),
        }
    }

    pub(crate) fn info(&self, id: SessionId) -> SessionInfo {
        let mut info = SessionInfo::new(id);
        (info.head, info.revision) = (Seq(self.head), Revision(self.revision));
        (info.live_messages, info.live_tokens) = (self.live_messages, self.live_tokens);
        (info.created, info.appended) = (self.created.map(Timestamp), self.appended.map(Timestamp));
        info
    }
}

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct CountRow {
    tokens: u32,
    basis: Basis,
    counter: String,
}

impl CountRow {
    fn of(count: &TokenCount) -> Self {
        Self { tokens: count.tokens.0, basis: count.basis, counter: count.counter.to_string() }
    }

    fn count(&self) -> TokenCount {
        TokenCount::new(Tokens(self.tokens), self.basis, self.counter.as_str().into())
    }
}

/// A message of the log.
#[derive(Serialize, Deserialize)]
pub(crate) struct MessageRow {
    seq: u64,
    /// In the stored form, which later releases read too.
    pub(crate) message: String,
    anchor: u64,
    turn: u32,
    count: CountRow,
    part_tokens: Vec<u32>,
    late: bool,
    orphan: bool,
    /// The part of the attribution that a commit needs, so that the message need not be decoded.
    standing: u8,
    pub(crate) hidden_by: Option<u64>,
    pub(crate) edit: Option<EditRow>,
    pub(crate) pruned_by: Option<u64>,
}

/// The stand-ins of a message's parts.
#[derive(Serialize, Deserialize)]
pub(crate) struct EditRow {
    by: u64,
    stand_ins: String,
    count: CountRow,
}

impl MessageRow {
    pub(crate) fn of(seq: Seq, entry: &Entry, hidden_by: Option<Revision>) -> Result<Self, StoreError> {
        Ok(Self {
            seq: seq.0,
            message: stored::encode(&entry.message).map_err(not_storable)?,
            anchor: entry.anchor.0,
            turn: entry.turn.0,
            count: CountRow::of(&entry.count),
            part_tokens: entry.part_tokens.iter().map(|tokens| tokens.0).collect(),
            late: entry.late,
            orphan: entry.orphan,
            standing: Standing::of(&entry.message).number(),
            hidden_by: hidden_by.map(|by| by.0),
            edit: None,
            pruned_by: None,
        })
    }

    pub(crate) const fn is_visible(&self) -> bool {
        self.hidden_by.is_none() && !self.orphan
    }

    pub(crate) const fn turn(&self) -> Turn {
        Turn(self.turn)
    }

    pub(crate) fn anchor(&self) -> Anchor {
        Anchor { anchor: Seq(self.anchor), hidden_by: self.hidden_by.map(Revision) }
    }

    fn message(&self) -> Result<Message, StoreError> {
        let unread = |error| corrupt(format!("message {} cannot be read", self.seq)).with_source(error);
        stored::decode(&self.message).map_err(unread)
    }

    fn entry(&self) -> Result<Entry, StoreError> {
        let mut entry = Entry::new(self.message()?, Seq(self.anchor), Turn(self.turn), self.count.count());
        entry.part_tokens = self.part_tokens.iter().copied().map(Tokens).collect();
        (entry.late, entry.orphan) = (self.late, self.orphan);
        Ok(entry)
    }

    pub(crate) fn live(self) -> Result<Live, StoreError> {
        let (key, entry) = (Seq(self.seq), self.entry()?);
        Ok(match self.edit {
            Some(edit) => {
                let Restored { stand_ins, count, .. } = edit.restored()?;
                Live::shortened(key, entry, stand_ins, count)
            }
            None => Live::new(key, entry),
        })
    }

    pub(crate) fn logged(self) -> Result<Logged, StoreError> {
        let mut logged = Logged::new(Seq(self.seq), self.entry()?, self.hidden_by.map(Revision));
        logged.edited_by = self.edit.as_ref().map(|edit| Revision(edit.by));
        logged.pruned_by = self.pruned_by.map(Revision);
        Ok(logged)
    }

    pub(crate) fn visible(&self) -> Result<VisibleMessage, StoreError> {
        let shown = self.edit.as_ref().map_or(&self.count, |edit| &edit.count);
        let (seq, anchor, tokens) = (Seq(self.seq), Seq(self.anchor), Tokens(shown.tokens));
        Ok(VisibleMessage { seq, anchor, tokens, standing: standing(self.standing)? })
    }

    pub(crate) fn edited(&self) -> Result<Edited, StoreError> {
        let (seq, message, whole) = (Seq(self.seq), self.message()?, self.count.count());
        let shortened = self.edit.as_ref().map(EditRow::restored).transpose()?;
        Ok(Edited { seq, message, whole, shortened })
    }

    /// Deletes the content of the message. Its place, its group and its size stay.
    pub(crate) fn prune(&mut self, by: Revision) -> Result<(), StoreError> {
        self.message = stored::encode(&self.message()?.into_pruned()).map_err(not_storable)?;
        self.part_tokens.clear();
        self.pruned_by = Some(by.0);
        if let Some(edit) = &mut self.edit {
            edit.stand_ins = stored::encode_stand_ins(&[]).map_err(not_storable)?;
        }
        Ok(())
    }
}

impl EditRow {
    pub(crate) fn of(restored: &Restored) -> Result<Self, StoreError> {
        let Restored { by, stand_ins, count } = restored;
        let stand_ins = stored::encode_stand_ins(stand_ins).map_err(not_storable)?;
        Ok(Self { by: by.0, stand_ins, count: CountRow::of(count) })
    }

    fn restored(&self) -> Result<Restored, StoreError> {
        let unread = |error| corrupt("the stand-ins of a message cannot be read").with_source(error);
        let stand_ins = stored::decode_stand_ins(&self.stand_ins).map_err(unread)?;
        Ok(Restored { by: Revision(self.by), stand_ins, count: self.count.count() })
    }
}

/// The place of a visible message or summary.
#[derive(Serialize, Deserialize)]
pub(crate) struct LiveRow {
    pub(crate) key: u64,
    /// The revision of its record, if it is a summary.
    pub(crate) summary_of: Option<u64>,
}

/// A summary, which has no place in the log.
#[derive(Serialize, Deserialize)]
pub(crate) struct SummaryRow {
    made: u64,
    key: u64,
    turn: u32,
    message: String,
    count: CountRow,
    pub(crate) hidden_by: Option<u64>,
    pub(crate) is_pruned: bool,
}

impl SummaryRow {
    pub(crate) fn of(made: Revision, turn: Turn, summary: &Summary) -> Result<Self, StoreError> {
        let message = stored::encode(&summary.message).map_err(not_storable)?;
        let (made, key, count) = (made.0, summary.key.0, CountRow::of(&summary.count));
        Ok(Self { made, key, turn: turn.0, message, count, hidden_by: None, is_pruned: false })
    }

    fn message(&self) -> Result<Message, StoreError> {
        let unread = |error| corrupt("a summary cannot be read").with_source(error);
        stored::decode(&self.message).map_err(unread)
    }

    pub(crate) fn live(self) -> Result<Live, StoreError> {
        let (key, message) = (Seq(self.key), self.message()?);
        let covers = message.attribution().derived_from.clone();
        // A summary is a group of its own.
        Ok(Live::summary(key, Entry::new(message, key, Turn(self.turn), self.count.count()), covers))
    }

    pub(crate) fn visible(&self) -> Result<VisibleSummary, StoreError> {
        let message = self.message()?;
        let (covers, standing) = (message.attribution().derived_from.clone(), Standing::of(&message));
        let (key, made, tokens) = (Seq(self.key), Revision(self.made), Tokens(self.count.tokens));
        Ok(VisibleSummary { key, made, covers, tokens, standing })
    }

    pub(crate) fn prune(&mut self) -> Result<(), StoreError> {
        self.message = stored::encode(&self.message()?.into_pruned()).map_err(not_storable)?;
        self.is_pruned = true;
        Ok(())
    }
}

/// A message or a summary that is hidden.
#[derive(Serialize, Deserialize)]
pub(crate) struct HiddenRow {
    /// The revision of its record, if it is a summary.
    pub(crate) summary_of: Option<u64>,
    pub(crate) key: u64,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct RecordRow {
    pub(crate) revision: u64,
    id: [u8; 16],
    pub(crate) record: String,
    pub(crate) undone_by: Option<u64>,
}

impl RecordRow {
    pub(crate) const fn new(revision: Revision, id: RecordId, record: String) -> Self {
        Self { revision: revision.0, id: *id.as_bytes(), record, undone_by: None }
    }

    pub(crate) const fn id(&self) -> RecordId {
        RecordId::from_bytes(self.id)
    }

    pub(crate) fn committed(&self) -> Result<Committed, StoreError> {
        let unread =
            |error| corrupt(format!("the record of {} cannot be read", self.revision)).with_source(error);
        let record = stored::decode_record(&self.record).map_err(unread)?;
        Ok(Committed::new(Revision(self.revision), record).undone(self.undone_by.map(Revision)))
    }
}

#[derive(Serialize, Deserialize)]
pub(crate) struct CallRow {
    id: String,
    anchor: u64,
    turn: u32,
    ordinal: u32,
}

impl CallRow {
    pub(crate) fn of(call: &UnansweredCall) -> Self {
        let UnansweredCall { id, anchor, turn, ordinal, .. } = call;
        Self { id: id.to_string(), anchor: anchor.0, turn: turn.0, ordinal: *ordinal }
    }

    pub(crate) fn call(self) -> UnansweredCall {
        UnansweredCall::new(self.id.into(), Seq(self.anchor), Turn(self.turn), self.ordinal)
    }
}

#[derive(Serialize, Deserialize)]
pub(crate) struct AppendRow {
    token: String,
    first: u64,
    head: u64,
    revision: u64,
    time: Option<u64>,
}

impl AppendRow {
    pub(crate) fn of(insert: &Insert<'_>) -> Self {
        let Appended { first, head, revision, .. } = insert.appended;
        let (token, time) = (insert.token.as_str().to_owned(), insert.time.map(|time| time.0));
        Self { token, first: first.0, head: head.0, revision: revision.0, time }
    }

    pub(crate) const fn appended(&self) -> Appended {
        Appended::new(Seq(self.first), Seq(self.head), Revision(self.revision))
    }

    pub(crate) fn logged(self) -> LoggedAppend {
        let appended = self.appended();
        LoggedAppend::new(AppendToken::new(self.token), appended, self.time.map(Timestamp))
    }
}

#[derive(Serialize, Deserialize)]
pub(crate) struct PruneRow {
    revision: u64,
    through: u64,
    messages: u64,
    summaries: u64,
}

impl PruneRow {
    pub(crate) const fn of(pruned: &Pruned) -> Self {
        let Pruned { revision, through, messages, summaries, .. } = *pruned;
        Self { revision: revision.0, through: through.0, messages, summaries }
    }

    pub(crate) const fn pruned(&self) -> Pruned {
        let mut pruned = Pruned::new(Revision(self.revision), Revision(self.through));
        (pruned.messages, pruned.summaries) = (self.messages, self.summaries);
        pruned
    }
}

#[derive(Serialize, Deserialize)]
pub(crate) struct StateRow {
    pub(crate) revision: u64,
    pub(crate) head: u64,
    pub(crate) text: String,
}

impl StateRow {
    pub(crate) fn kept(self) -> KeptState {
        KeptState::new(StateRevision(self.revision), Seq(self.head), self.text.into())
    }
}

fn standing(number: u8) -> Result<Standing, StoreError> {
    Standing::parse(number.into()).ok_or_else(|| corrupt("the standing of a message is of an unknown kind"))
}
