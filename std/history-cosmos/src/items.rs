//! The items of a session in the container: their fields, and how the fields are read. The ids of items are in `ids`.
//!
//! All items have the partition key of the session. Numbers that may need more than 53 bits are stored as text, because
//! the service uses floating point.

use epitome_core::{Basis, Revision, Seq, Tokens, Turn};
use epitome_history::kernel::{Counters, SaidBefore};
use epitome_history::rules::{Restored, corrupt, invalid, not_storable};
use epitome_history::{
    Appended, Entry, Pruned, SessionId, StoreError, Timestamp, TokenCount, UnansweredCall, stored,
};
use epitome_message::Str;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::failure::unread;
use crate::ids::{name_hex, piece_id};

/// The kind of an item, in its field `epitome`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    Session,
    /// A session that is being deleted.
    Deleted,
    Message,
    Append,
    Record,
    /// Stand-ins of messages, from a revision on.
    StandIns,
    Prune,
    State,
    /// A piece of a text that is too long for one item.
    Piece,
    /// The mark of a writer whose items do not count yet.
    Stage,
}

/// An item as it was read.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Found<T> {
    pub(crate) id: String,
    #[serde(rename = "_etag")]
    pub(crate) etag: String,
    #[serde(flatten)]
    pub(crate) fields: T,
}

/// A text, or a reference to its pieces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Text {
    Here(String),
    Apart { stage: String, first: u32, pieces: u32 },
}

impl Default for Text {
    fn default() -> Self {
        Self::Here(String::new())
    }
}

impl Text {
    /// The ids of the pieces; none for a text in one item.
    pub(crate) fn pieces(&self) -> Vec<String> {
        match self {
            Self::Here(_) => Vec::new(),
            Self::Apart { stage, first, pieces } => {
                (*first..first.saturating_add(*pieces)).map(|at| piece_id(stage, at)).collect()
            }
        }
    }
}

/// The item `session`: the counters and the visible members.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Session {
    pub(crate) layout: u32,
    /// Id that separates this session from an earlier or later session of the same name.
    #[serde(default)]
    pub(crate) life: String,
    /// The id of the session.
    pub(crate) name: String,
    /// The id in hexadecimal, so that ids sort in the order of their bytes.
    #[serde(default)]
    pub(crate) name_hex: String,
    pub(crate) head: u64,
    pub(crate) revision: u64,
    pub(crate) live_messages: u64,
    pub(crate) live_tokens: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) created: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) appended: Option<String>,
    /// The revision of its state; 0 if it has none.
    #[serde(default)]
    pub(crate) state: u64,
    /// The revision of the latest record that is not undone, or 0.
    #[serde(default)]
    pub(crate) latest_held: u64,
    /// The revision of a prune whose texts are not all deleted yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pruning: Option<u64>,
    #[serde(default)]
    pub(crate) visible: Text,
    /// The hidden tool calls without a result.
    #[serde(default)]
    pub(crate) unanswered: Text,
}

impl Session {
    pub(crate) fn new(session: &SessionId) -> Self {
        let name = session.as_str().to_owned();
        Self {
            layout: LAYOUT,
            life: Uuid::new_v4().simple().to_string(),
            name_hex: name_hex(session),
            name,
            ..Self::default()
        }
    }

    pub(crate) fn counters(&self) -> Result<Counters, StoreError> {
        Ok(Counters {
            head: Seq(self.head),
            revision: Revision(self.revision),
            live_messages: self.live_messages,
            live_tokens: self.live_tokens,
            created: time(self.created.as_deref())?,
            appended: time(self.appended.as_deref())?,
        })
    }

    pub(crate) fn set_counters(&mut self, counters: &Counters) {
        (self.head, self.revision) = (counters.head.0, counters.revision.0);
        (self.live_messages, self.live_tokens) = (counters.live_messages, counters.live_tokens);
        self.created = counters.created.map(|time| time.0.to_string());
        self.appended = counters.appended.map(|time| time.0.to_string());
    }
}

fn time(text: Option<&str>) -> Result<Option<Timestamp>, StoreError> {
    let read =
        |text: &str| text.parse().map(Timestamp).map_err(|_| corrupt("the time of an append cannot be read"));
    text.map(read).transpose()
}

/// The stored form of a token count.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Count {
    pub(crate) tokens: u32,
    pub(crate) basis: Basis,
    pub(crate) counter: Str,
}

impl Count {
    pub(crate) fn of(count: &TokenCount) -> Self {
        Self { tokens: count.tokens.0, basis: count.basis, counter: count.counter.clone() }
    }

    pub(crate) fn read(&self) -> TokenCount {
        TokenCount::new(Tokens(self.tokens), self.basis, self.counter.clone())
    }
}

/// A message of the log.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Row {
    /// The `life` of the session that the message belongs to.
    #[serde(default)]
    pub(crate) life: String,
    pub(crate) seq: u64,
    pub(crate) anchor: u64,
    pub(crate) turn: u32,
    #[serde(flatten)]
    pub(crate) count: Count,
    pub(crate) standing: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) part_tokens: Vec<u32>,
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub(crate) late: bool,
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub(crate) orphan: bool,
    /// The revision of the prune that deleted the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pruned_by: Option<u64>,
    /// Stage of the row: the row counts only if an append has this stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stage: Option<String>,
    #[serde(default)]
    pub(crate) text: Text,
}

impl Row {
    /// Makes the entry of the log; `body` is the stored form of its message.
    pub(crate) fn entry(&self, body: &str) -> Result<Entry, StoreError> {
        let message = epitome_history::bodies::message(Seq(self.seq), body)?;
        let mut entry = Entry::new(message, Seq(self.anchor), Turn(self.turn), self.count.read());
        (entry.late, entry.orphan) = (self.late, self.orphan);
        entry.part_tokens = self.part_tokens.iter().copied().map(Tokens).collect();
        Ok(entry)
    }
}

/// An append: the result for its append token.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AppendItem {
    #[serde(rename = "first_seq")]
    pub(crate) first: u64,
    pub(crate) until: u64,
    pub(crate) revision: u64,
    pub(crate) token: String,
    /// The digest of its messages; `-` if one of them was pruned.
    pub(crate) digest: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) time: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stage: Option<String>,
}

impl AppendItem {
    pub(crate) const PRUNED: &str = "-";

    pub(crate) fn appended(&self) -> Appended {
        Appended::new(Seq(self.first), Seq(self.until), Revision(self.revision))
    }

    pub(crate) fn time(&self) -> Result<Option<Timestamp>, StoreError> {
        time(self.time.as_deref())
    }

    pub(crate) fn compared(&self, digest: &str) -> SaidBefore {
        match self.digest.as_str() {
            Self::PRUNED => SaidBefore::Pruned,
            known if known == digest => SaidBefore::Same,
            _ => SaidBefore::Other,
        }
    }
}

/// A compaction record and its hidden members.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RecordItem {
    pub(crate) revision: u64,
    pub(crate) record_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) undone_by: Option<u64>,
    /// The revision of the latest earlier record that was not undone, or 0.
    pub(crate) held_before: u64,
    /// Whether the record shortens messages.
    pub(crate) edits: bool,
    /// The stored form of the record, without its summaries.
    pub(crate) body: Text,
    /// The summaries of the record, as [`SummaryRow`]s.
    pub(crate) summaries: Text,
    /// Messages and summaries that the record, or its undoing, hides and that can be pruned.
    pub(crate) hidden: Text,
    /// The revision that hid these members, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hidden_at: Option<u64>,
    /// Messages and summaries that the record hides and that were pruned.
    pub(crate) pruned: Text,
    /// The first and the last message that the record hides.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "first_seq")]
    pub(crate) first: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "last_seq")]
    pub(crate) last: Option<u64>,
}

/// A summary of a record.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SummaryRow {
    pub(crate) key: u64,
    pub(crate) turn: u32,
    #[serde(flatten)]
    pub(crate) count: Count,
    pub(crate) covers: Vec<[u64; 2]>,
    pub(crate) standing: u64,
    /// Its stored form.
    pub(crate) text: String,
}

/// The stand-ins that one revision has stored, as [`StandInRow`]s.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StandInsItem {
    pub(crate) revision: u64,
    pub(crate) rows: Text,
}

/// The stand-ins of a message.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StandInRow {
    pub(crate) seq: u64,
    pub(crate) by: u64,
    #[serde(flatten)]
    pub(crate) count: Count,
    /// Its stored form.
    pub(crate) stand_ins: String,
}

impl StandInRow {
    pub(crate) fn of(seq: Seq, restored: &Restored) -> Result<Self, StoreError> {
        let stand_ins = stored::encode_stand_ins(&restored.stand_ins).map_err(not_storable)?;
        Ok(Self { seq: seq.0, by: restored.by.0, count: Count::of(&restored.count), stand_ins })
    }

    pub(crate) fn restored(&self) -> Result<Restored, StoreError> {
        let unread = |error| corrupt("what stands in place of a part cannot be read").with_source(error);
        let stand_ins = stored::decode_stand_ins(&self.stand_ins).map_err(unread)?;
        Ok(Restored { by: Revision(self.by), stand_ins, count: self.count.read() })
    }
}

/// A prune.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PruneItem {
    pub(crate) revision: u64,
    pub(crate) through: u64,
    pub(crate) messages: u64,
    pub(crate) summaries: u64,
}

impl PruneItem {
    pub(crate) fn of(pruned: &Pruned) -> Self {
        let Pruned { revision, through, messages, summaries, .. } = *pruned;
        Self { revision: revision.0, through: through.0, messages, summaries }
    }

    pub(crate) fn read(&self) -> Pruned {
        let mut pruned = Pruned::new(Revision(self.revision), Revision(self.through));
        (pruned.messages, pruned.summaries) = (self.messages, self.summaries);
        pruned
    }
}

/// The state.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StateItem {
    pub(crate) revision: u64,
    /// The head of the session when the state was stored.
    pub(crate) head: u64,
    pub(crate) text: Text,
}

/// A piece of a text, or the mark of a stage.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Staged {
    pub(crate) stage: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) text: String,
}

/// The empty content of the item that marks a session as deleted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Nothing {}

/// Makes the JSON of an item from its fields, with its id, partition key and kind.
pub(crate) fn item(
    partition: &str,
    id: &str,
    kind: Kind,
    fields: &impl Serialize,
) -> Result<Value, StoreError> {
    let mut value = serde_json::to_value(fields).map_err(|_| no_text())?;
    let head = [("id", id.into()), ("session_id", partition.into())];
    let kind = serde_json::to_value(kind).map_err(|_| no_text())?;
    let object = value.as_object_mut().ok_or_else(no_text)?;
    object.extend(head.into_iter().chain([("epitome", kind)]).map(|(name, value)| (name.to_owned(), value)));
    Ok(value)
}

/// Writes a list as text.
pub(crate) fn list_text<T: Serialize>(rows: &[T]) -> Result<String, StoreError> {
    serde_json::to_string(rows).map_err(|_| no_text())
}

/// Reads a list from its text; the empty text is the empty list.
pub(crate) fn read_list<T: for<'a> Deserialize<'a>>(text: &str, name: &str) -> Result<Vec<T>, StoreError> {
    if text.is_empty() { Ok(Vec::new()) } else { serde_json::from_str(text).map_err(|_| unread(name)) }
}

fn no_text() -> StoreError {
    invalid("what is to be stored has no text")
}

/// Writes the unanswered hidden calls as text: anchor of the group, place in the group, turn and id.
pub(crate) fn calls_text(calls: &[UnansweredCall]) -> Result<String, StoreError> {
    let rows: Vec<(u64, u32, u32, &Str)> =
        calls.iter().map(|call| (call.anchor.0, call.ordinal, call.turn.0, &call.id)).collect();
    list_text(&rows)
}

pub(crate) fn read_calls(text: &str) -> Result<Vec<UnansweredCall>, StoreError> {
    let rows: Vec<(u64, u32, u32, Str)> = read_list(text, "the hidden calls")?;
    let call = |(anchor, ordinal, turn, id)| UnansweredCall::new(id, Seq(anchor), Turn(turn), ordinal);
    Ok(rows.into_iter().map(call).collect())
}

/// The layout of the items.
pub(crate) const LAYOUT: u32 = 1;

#[cfg(test)]
mod tests {
    use crate::ids::stage_id;

    use super::*;

    #[test]
    fn items_have_their_fields() {
        let fields = Staged { stage: "5".into(), text: String::new() };
        let value = item("demo", &stage_id("5"), Kind::Stage, &fields).unwrap();
        assert_eq!(
            value.to_string(),
            r#"{"epitome":"stage","id":"stage.5","session_id":"demo","stage":"5"}"#
        );
        let apart = Text::Apart { stage: "5".into(), first: 2, pieces: 2 };
        assert_eq!(apart.pieces(), ["piece.5.2", "piece.5.3"]);
        let text = serde_json::to_string(&apart).unwrap();
        assert_eq!(serde_json::from_str::<Text>(&text).unwrap(), apart);
        assert_eq!(serde_json::from_str::<Text>("\"a\"").unwrap(), Text::Here("a".into()));
    }
}
