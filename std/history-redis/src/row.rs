//! Messages, stand-ins and records in their stored form.

use core::fmt::Display;

use epitome_core::{Basis, Revision, Seq, Tokens, Turn};
use epitome_message::{Message, Str};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use epitome_history::rules::{self, Restored, corrupt};
use epitome_history::stored;
use epitome_history::{Entry, PartStandIn, StoreError, Summary, TokenCount, UnansweredCall};

/// A message of the log, or a summary.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Row<'a> {
    anchor: u64,
    turn: u32,
    tokens: u32,
    basis: Basis,
    counter: Str,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    part_tokens: Vec<u32>,
    #[serde(default, skip_serializing_if = "is_false")]
    late: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    orphan: bool,
    /// The revision of the prune that deleted its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pruned_by: Option<u64>,
    /// The stored form of the message.
    #[serde(borrow)]
    message: &'a RawValue,
}

/// The stand-ins of a message.
#[derive(Debug, Serialize, Deserialize)]
struct EditRow<'a> {
    /// The revision that set them.
    revision: u64,
    tokens: u32,
    basis: Basis,
    counter: Str,
    /// The stored form of the stand-ins.
    #[serde(borrow)]
    stand_ins: &'a RawValue,
}

/// The value of `entry`. `body` is the stored form of its message.
pub(super) fn message(entry: &Entry, body: &str) -> Result<String, StoreError> {
    text(&Row::of(entry, raw(body)?))
}

/// The value of `summary`, which is a group of its own. `body` is the stored form of its message.
pub(super) fn summary(summary: &Summary, turn: Turn, body: &str) -> Result<String, StoreError> {
    let TokenCount { tokens, basis, ref counter, .. } = summary.count;
    text(&Row {
        anchor: summary.key.0,
        turn: turn.0,
        tokens: tokens.0,
        basis,
        counter: counter.clone(),
        part_tokens: Vec::new(),
        late: false,
        orphan: false,
        pruned_by: None,
        message: raw(body)?,
    })
}

impl<'a> Row<'a> {
    fn of(entry: &Entry, message: &'a RawValue) -> Self {
        Self {
            anchor: entry.anchor.0,
            turn: entry.turn.0,
            tokens: entry.count.tokens.0,
            basis: entry.count.basis,
            counter: entry.count.counter.clone(),
            part_tokens: entry.part_tokens.iter().map(|size| size.0).collect(),
            late: entry.late,
            orphan: entry.orphan,
            pruned_by: None,
            message,
        }
    }

    /// Reads the value of the message at `key`.
    pub(super) fn read(key: Seq, value: Option<&'a String>) -> Result<Self, StoreError> {
        let value = value.ok_or_else(|| corrupt(format!("the text of message {key} is missing")))?;
        parse(value, || format!("message {key} cannot be read"))
    }

    pub(super) fn message(&self) -> Result<Message, StoreError> {
        let unread = |error| corrupt("a message cannot be read").with_source(error);
        stored::decode(self.message.get()).map_err(unread)
    }

    pub(super) fn count(&self) -> TokenCount {
        TokenCount::new(Tokens(self.tokens), self.basis, self.counter.clone())
    }

    pub(super) fn entry(&self) -> Result<Entry, StoreError> {
        let mut entry = Entry::new(self.message()?, Seq(self.anchor), Turn(self.turn), self.count());
        (entry.late, entry.orphan) = (self.late, self.orphan);
        entry.part_tokens = self.part_tokens.iter().copied().map(Tokens).collect();
        Ok(entry)
    }

    pub(super) fn pruned_by(&self) -> Option<Revision> {
        self.pruned_by.map(Revision)
    }

    /// The value after the prune of `revision` has deleted the text.
    pub(super) fn pruned(self, revision: Revision) -> Result<String, StoreError> {
        let left = stored::encode(&self.message()?.into_pruned()).map_err(rules::not_storable)?;
        let pruned_by = Some(revision.0);
        text(&Row { part_tokens: Vec::new(), pruned_by, message: raw(&left)?, ..self })
    }
}

/// The value of the stand-ins of a message.
pub(super) fn edited(restored: &Restored) -> Result<String, StoreError> {
    let stand_ins = stored::encode_stand_ins(&restored.stand_ins).map_err(rules::not_storable)?;
    text(&EditRow {
        revision: restored.by.0,
        tokens: restored.count.tokens.0,
        basis: restored.count.basis,
        counter: restored.count.counter.clone(),
        stand_ins: raw(&stand_ins)?,
    })
}

/// Decodes the value of the stand-ins of a message.
pub(super) fn read_edit(value: &str) -> Result<Restored, StoreError> {
    let unread = || "what stands in place of a part cannot be read";
    let row: EditRow<'_> = parse(value, || unread().into())?;
    let stand_ins: Vec<PartStandIn> = stored::decode_stand_ins(row.stand_ins.get())
        .map_err(|error| corrupt(unread()).with_source(error))?;
    let count = TokenCount::new(Tokens(row.tokens), row.basis, row.counter);
    Ok(Restored { by: Revision(row.revision), stand_ins, count })
}

/// The field and the value of a hidden call: `ANCHOR.ORDINAL` and `[turn,id]`.
pub(super) fn open_call(call: &UnansweredCall) -> Result<[String; 2], StoreError> {
    Ok([open_field((call.anchor, call.ordinal)), text(&(call.turn.0, &call.id))?])
}

/// The field of a hidden call, by its group and its place in it.
pub(super) fn open_field((anchor, ordinal): (Seq, u32)) -> String {
    format!("{anchor}.{ordinal}")
}

/// Decodes the hidden calls, ordered by group and by place in the group.
pub(super) fn read_open(fields: &[(String, String)]) -> Result<Vec<UnansweredCall>, StoreError> {
    let unread = || corrupt("a hidden call cannot be read");
    let call = |(field, value): &(String, String)| {
        let (anchor, ordinal) = field.split_once('.').ok_or_else(unread)?;
        let (turn, id): (u32, Str) = parse(value, || "a hidden call cannot be read".into())?;
        let anchor = anchor.parse().map(Seq).map_err(|_| unread())?;
        Ok(UnansweredCall::new(id, anchor, Turn(turn), ordinal.parse().map_err(|_| unread())?))
    };
    let mut calls = fields.iter().map(call).collect::<Result<Vec<_>, StoreError>>()?;
    calls.sort_unstable_by_key(|call| (call.anchor, call.ordinal));
    Ok(calls)
}

/// The field of the summary at `key` of the record with this revision.
pub(super) fn summary_field(key: impl Display, revision: Revision) -> String {
    format!("{key}.{revision}")
}

fn text(value: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|_| rules::invalid("what is to be stored has no text"))
}

fn raw(text: &str) -> Result<&RawValue, StoreError> {
    serde_json::from_str(text).map_err(|_| rules::invalid("what is to be stored has no text"))
}

/// The error names the place, and contains nothing of the value.
fn parse<'a, T: Deserialize<'a>>(value: &'a str, what: impl FnOnce() -> String) -> Result<T, StoreError> {
    serde_json::from_str(value).map_err(|_| corrupt(what()))
}

fn is_false(flag: &bool) -> bool {
    !flag
}
