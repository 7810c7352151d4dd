//! The history that a session keeps itself, in the JSON of the session's state.
//!
//! ```text
//! state[source_id].messages    the log, in the shape of Microsoft Agent Framework
//! state[source_id].epitome     what that shape has no room for: groups, sizes, tokens of appends, compaction records
//! ```
//!
//! The messages alone are enough: a list that Agent Framework has written or changed is read as it is, grouped and
//! counted anew. If it has only added messages, the known history stays as it was and the new messages are appended. In
//! both cases, messages that Agent Framework has marked as excluded are hidden. Messages that are hidden here are
//! marked in the list, which also contains summaries ([`list`]).

mod list;

use std::sync::Arc;

use epitome_core::{Basis, Seq, TokenCounter, Tokens, Turn};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use self::list::{Listed, listed};
use super::{SessionError, SessionErrorKind, State, excluded};
use crate::history::files::hex;
use crate::history::inner::{Snapshot, Step};
use crate::history::stored;
use crate::history::{AppendToken, Entry, History, HistoryStore, MemoryStore, SessionId, TokenCount};
use crate::message::{Message, Str};
use crate::wire::agent_framework::{read_messages, trust_marker, write_with_sources};

pub(super) use self::list::is_excluded;

/// The key of the list of messages, as Agent Framework names it.
pub(super) const MESSAGES: &str = "messages";
/// The key of the additional data beside the list, and beside a session's own fields.
pub(super) const BESIDE: &str = "epitome";
/// The version that this release writes, and the highest that it reads.
pub(super) const VERSION: u64 = 1;

#[derive(Serialize, Deserialize)]
struct Beside {
    v: u64,
    /// Number of values of the list that this describes: all, when it was written.
    values: usize,
    /// Digest of these values, so that a changed list is noticed.
    digest: String,
    entries: Vec<KeptEntry>,
    appends: Vec<(String, usize)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    records: Vec<String>,
    /// Other changes that have moved the revision.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    steps: Vec<Step>,
    /// Positions of the values that stand for other messages, and the numbers of the messages that they show.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    stand_ins: Vec<(usize, u64)>,
    /// Stored forms of the messages whose values do not hold them whole, by the position of the value among those of
    /// the log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    exact: Vec<(usize, Vec<String>)>,
}

/// Anchor, turn, tokens, basis of the count, name of the counter, flags, and the tokens of the parts.
#[derive(Serialize, Deserialize)]
struct KeptEntry(
    u64,
    u32,
    u32,
    Basis,
    Str,
    #[serde(default)] u8,
    #[serde(default, skip_serializing_if = "Vec::is_empty")] Vec<u32>,
);

const LATE: u8 = 1;
const ORPHAN: u8 = 2;

/// Writes the history of `session` in `store` into `state`.
pub(super) fn write(store: &MemoryStore, session: &SessionId, state: &mut State) -> Result<(), SessionError> {
    let Some(snapshot) = store.snapshot(session) else { return Ok(()) };
    let messages: Vec<Message> = snapshot.entries.iter().map(|entry| entry.message.clone()).collect();
    let written = write_with_sources(&messages);
    let mut exact = Vec::new();
    let mut rest = &messages[..];
    for (at, (value, count)) in written.iter().enumerate() {
        let (of_value, others) = rest.split_at_checked(*count).unwrap_or((rest, &[]));
        rest = others;
        if !read_messages(core::slice::from_ref(value)).is_ok_and(|read| read == of_value) {
            let texts: Result<_, _> = of_value.iter().map(stored::encode).collect();
            exact.push((at, texts.map_err(|error| unwritable().with_source(error))?));
        }
    }
    let Listed { values, stand_ins } = listed(written, &snapshot, &store.sent(session)?);
    let records: Result<_, _> = snapshot.records.iter().map(stored::encode_record).collect();
    let beside = Beside {
        v: VERSION,
        values: values.len(),
        digest: digest(&values),
        entries: snapshot.entries.iter().map(kept_entry).collect(),
        appends: snapshot.appends.iter().map(|(token, count)| (token.as_str().to_owned(), *count)).collect(),
        records: records.map_err(|error| unwritable().with_source(error))?,
        steps: snapshot.steps,
        stand_ins: stand_ins.iter().map(|(at, seq)| (*at, seq.0)).collect(),
        exact,
    };
    let beside = serde_json::to_value(&beside).map_err(|error| unwritable().with_source(error))?;
    state.insert(MESSAGES.to_owned(), Value::Array(values));
    state.insert(BESIDE.to_owned(), beside);
    Ok(())
}

/// Takes the history out of `state`, if there is one, into a new store. On an error the state is as it was.
pub(super) async fn take(
    session: &SessionId,
    state: &mut State,
    counter: Arc<dyn TokenCounter + Send + Sync>,
    trusts_markers: bool,
) -> Result<Option<Arc<MemoryStore>>, SessionError> {
    let values = match state.get(MESSAGES) {
        None => return Ok(None),
        Some(Value::Array(values)) => values,
        Some(_) => {
            return Err(SessionError::invalid("`messages` in the state is not a list: repair or remove it"));
        }
    };
    let store = Arc::new(MemoryStore::new());
    let known = match state.get(BESIDE) {
        Some(beside) => restore(&store, session, values, beside)?,
        None => Known::default(),
    };
    let rest = values.get(known.values..).unwrap_or_default();
    let mut messages = read_messages(rest).map_err(unreadable)?;
    if trusts_markers {
        messages = messages.into_iter().map(trust_marker).collect();
    }
    let marked = excluded::marked(&known.log, &known.stand_ins, rest).map_err(unreadable)?;
    if !messages.is_empty() {
        // The store is new and not shared: its answers do not wait.
        let shared: Arc<dyn HistoryStore> = Arc::<MemoryStore>::clone(&store);
        let mut history = History::open(shared, session.clone(), Arc::clone(&counter)).await?;
        let token = AppendToken::new(format!("found {}..{}", known.values, values.len()));
        history.append(&token, messages).await?;
    }
    if !marked.is_empty() {
        excluded::hide(Arc::clone(&store), session, &marked, counter).await?;
    }
    state.remove(MESSAGES);
    state.remove(BESIDE);
    Ok(Some(store))
}

/// Data about a list that its values do not hold.
#[derive(Default)]
struct Known {
    /// Number of the list's values that the data describes.
    values: usize,
    /// The values that are the log, without our marks.
    log: Vec<Value>,
    /// The values that stand for other messages, with the numbers of the messages that they show.
    stand_ins: Vec<(Seq, Value)>,
}

/// Restores the history from `values` and the data `beside` them. Restores nothing if the values were changed since.
fn restore(
    store: &MemoryStore,
    session: &SessionId,
    values: &[Value],
    beside: &Value,
) -> Result<Known, SessionError> {
    let version = beside.get("v").and_then(Value::as_u64).unwrap_or(VERSION);
    if version > VERSION {
        return Err(SessionError::invalid(format!(
            "the history in the state is of version {version}, and this release reads up to {VERSION}: use a newer one"
        )));
    }
    let beside =
        Beside::deserialize(beside).map_err(|_| corrupt("what stands beside the messages is damaged"))?;
    let of_list = values.get(..beside.values).filter(|values| digest(values) == beside.digest);
    let Some(of_list) = of_list else {
        tracing::warn!(
            session = session.as_str(),
            "the messages in the state were changed by others: they are taken as they are, without compactions"
        );
        return Ok(Known::default());
    };
    let mut known = Known { values: beside.values, ..Known::default() };
    let mut stand_ins = beside.stand_ins.iter().peekable();
    for (at, value) in of_list.iter().enumerate() {
        let mut value = value.clone();
        if let Some((_, seq)) = stand_ins.next_if(|(place, _)| *place == at) {
            known.stand_ins.push((Seq(*seq), value));
        } else {
            list::unmark(&mut value);
            known.log.push(value);
        }
    }
    store.restore(session, &snapshot(&known.log, &beside)?)?;
    Ok(known)
}

fn snapshot(values: &[Value], beside: &Beside) -> Result<Snapshot, SessionError> {
    let mut messages = Vec::with_capacity(beside.entries.len());
    let mut exact = beside.exact.iter().peekable();
    for (at, value) in values.iter().enumerate() {
        if let Some((_, texts)) = exact.next_if(|(place, _)| *place == at) {
            let decoded: Result<Vec<_>, _> = texts.iter().map(|text| stored::decode(text)).collect();
            messages.extend(decoded.map_err(|error| corrupt("a message").with_source(error))?);
        } else {
            messages.extend(read_messages(core::slice::from_ref(value)).map_err(unreadable)?);
        }
    }
    if messages.len() != beside.entries.len() {
        return Err(corrupt("it is about another number of messages"));
    }
    let records = beside.records.iter().map(|text| stored::decode_record(text)).collect::<Result<_, _>>();
    let appends = beside.appends.iter().map(|(token, count)| (AppendToken::new(token.as_str()), *count));
    Ok(Snapshot {
        entries: messages
            .into_iter()
            .zip(&beside.entries)
            .map(|(message, kept)| entry(message, kept))
            .collect(),
        appends: appends.collect(),
        records: records.map_err(|error| corrupt("a compaction record").with_source(error))?,
        steps: beside.steps.clone(),
    })
}

fn kept_entry(entry: &Entry) -> KeptEntry {
    let flags = if entry.late { LATE } else { 0 } | if entry.orphan { ORPHAN } else { 0 };
    let count = &entry.count;
    let parts = entry.part_tokens.iter().map(|tokens| tokens.0).collect();
    KeptEntry(entry.anchor.0, entry.turn.0, count.tokens.0, count.basis, count.counter.clone(), flags, parts)
}

fn entry(message: Message, kept: &KeptEntry) -> Entry {
    let KeptEntry(anchor, turn, tokens, basis, counter, flags, parts) = kept;
    let count = TokenCount::new(Tokens(*tokens), *basis, counter.clone());
    let mut entry = Entry::new(message, Seq(*anchor), Turn(*turn), count);
    (entry.late, entry.orphan) = (flags & LATE != 0, flags & ORPHAN != 0);
    entry.part_tokens = parts.iter().copied().map(Tokens).collect();
    entry
}

/// Digest of the roles and contents of the messages, without notes of other programs: in hexadecimal, 16 bytes of a
/// SHA-256.
fn digest(values: &[Value]) -> String {
    let mut hash = Sha256::new();
    for value in values {
        for key in ["role", "contents"] {
            let text = value.get(key).map(Value::to_string).unwrap_or_default();
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        }
    }
    hex(&hash.finalize()).get(..32).map(String::from).unwrap_or_default()
}

fn unwritable() -> SessionError {
    SessionError::invalid("the session's history cannot be written")
}

fn unreadable(error: crate::wire::WireError) -> SessionError {
    SessionError::new(SessionErrorKind::Corrupt, "`messages` in the state").with_source(error)
}

fn corrupt(what: &str) -> SessionError {
    SessionError::new(SessionErrorKind::Corrupt, format!("the history in the state: {what}"))
}
