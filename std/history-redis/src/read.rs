//! Load, and reads of the log, the records, the prunes and the appends.

use core::ops::Range;

use epitome_core::{Head, Revision, Seq};
use epitome_history::kernel::Extent;
use epitome_history::rules::{self, Restored, corrupt};
use epitome_history::{
    AppendToken, Appended, Committed, KeptState, Live, Loaded, LogPage, Logged, LoggedAppend, Pruned,
    SessionId, StateRevision, StoreError, Summary,
};

use super::Shared;
use super::keys::{Key, SessionKeys};
use super::member::{Member, Place, Receipt};
use super::record::{StoredRecord, read_pruned};
use super::row::{self, Row};
use super::script::{Args, Call, SCRIPTS};

/// A live projection in the form of the script's answer. The caller decodes it, not the runtime of the operations.
#[derive(Debug)]
pub(super) struct Projection {
    head: Head,
    revision: Revision,
    members: Vec<String>,
    /// The values of messages and of summaries, in the order of the members.
    messages: Vec<Option<String>>,
    summaries: Vec<Option<String>>,
    /// The stand-ins of the shortened messages.
    edits: Vec<Option<String>>,
    open: Vec<(String, String)>,
}

type ProjectionReply = (
    u64,
    u64,
    Vec<String>,
    Vec<Option<String>>,
    Vec<Option<String>>,
    Vec<Option<String>>,
    Vec<(String, String)>,
);

pub(super) async fn load(
    store: &Shared,
    keys: &SessionKeys,
    extent: Extent,
) -> Result<Projection, StoreError> {
    let word = match extent {
        Extent::All => "all",
        Extent::LastTurn => "tail",
    };
    let call = Call { script: &SCRIPTS.load, keys, args: Args::of([word.to_owned()]) };
    let found: Option<ProjectionReply> = store.connections.call("load", &call).await?;
    let (head, revision, members, messages, summaries, edits, open) =
        found.ok_or_else(|| rules::not_found("load"))?;
    let (head, revision) = (Seq(head), Revision(revision));
    Ok(Projection { head, revision, members, messages, summaries, edits, open })
}

impl Projection {
    pub(super) fn into_loaded(self) -> Result<Loaded, StoreError> {
        let (mut messages, mut summaries) = (self.messages.iter(), self.summaries.iter());
        let mut edits = self.edits.iter();
        let mut loaded = Loaded::new(self.head, self.revision);
        for text in &self.members {
            let member = Member::parse(text)?;
            let key = member.key();
            loaded.live.push(match member {
                Member::Message { edited, .. } => {
                    let entry = Row::read(key, messages.next().and_then(Option::as_ref))?.entry()?;
                    if edited {
                        let lost = || corrupt(format!("what stands in message {key} is missing"));
                        let edit = edits.next().and_then(Option::as_ref).ok_or_else(lost)?;
                        let Restored { stand_ins, count, .. } = row::read_edit(edit)?;
                        Live::shortened(key, entry, stand_ins, count)
                    } else {
                        Live::new(key, entry)
                    }
                }
                Member::Summary { covers, .. } => {
                    let value = summaries.next().and_then(Option::as_ref);
                    Live::summary(key, Row::read(key, value)?.entry()?, covers)
                }
            });
        }
        // The script returns the last turn newest first.
        loaded.live.sort_by_key(|live| live.key);
        loaded.unanswered = row::read_open(&self.open)?;
        Ok(loaded)
    }
}

/// A page of the log in the form of the script's answer.
#[derive(Debug)]
pub(super) struct Page {
    range: Range<Seq>,
    head: Head,
    messages: Vec<Option<String>>,
    places: Vec<Option<String>>,
    edits: Vec<Option<String>>,
}

type PageReply = (u64, Vec<Option<String>>, Vec<Option<String>>, Vec<Option<String>>);

pub(super) async fn log(
    store: &Shared,
    keys: &SessionKeys,
    range: Range<Seq>,
    limit: u32,
) -> Result<Page, StoreError> {
    let limit = limit.min(PAGE_MESSAGES_MAX);
    let end = range.end.min(Seq(range.start.0.saturating_add(u64::from(limit))));
    let args = Args::of([range.start.to_string(), end.to_string()]);
    let call = Call { script: &SCRIPTS.log, keys, args };
    let found: Option<PageReply> = store.connections.call("log", &call).await?;
    let (head, messages, places, edits) = found.ok_or_else(|| rules::not_found("log"))?;
    Ok(Page { range, head: Seq(head), messages, places, edits })
}

impl Page {
    pub(super) fn into_page(self) -> Result<LogPage, StoreError> {
        let mut messages = Vec::with_capacity(self.messages.len());
        let found = self.messages.iter().zip(&self.places).zip(&self.edits);
        for (seq, ((value, place), edit)) in (self.range.start.0..self.head.0).map(Seq).zip(found) {
            let lost = || corrupt(format!("message {seq} is missing"));
            let row = Row::read(seq, value.as_ref())?;
            let Place { hidden_by, .. } = Place::parse(place.as_deref().ok_or_else(lost)?)?;
            let mut logged = Logged::new(seq, row.entry()?, hidden_by);
            logged.edited_by = edit.as_deref().map(row::read_edit).transpose()?.map(|edit| edit.by);
            logged.pruned_by = row.pruned_by();
            messages.push(logged);
        }
        let end = Seq(self.range.start.0.saturating_add(messages.len() as u64));
        Ok(LogPage::new(messages, rules::next_page(end, self.range.end, self.head)))
    }
}

/// Records in the form of the script's answer, each with the values of its summaries.
pub(super) type Records = (Vec<String>, Vec<Vec<Option<String>>>);

pub(super) async fn records(
    store: &Shared,
    keys: &SessionKeys,
    after: Option<Revision>,
    limit: u32,
) -> Result<Records, StoreError> {
    let call = Call { script: &SCRIPTS.records, keys, args: page(after, limit) };
    let found: Option<Records> = store.connections.call("records", &call).await?;
    found.ok_or_else(|| rules::not_found("records"))
}

/// Arguments for the entries after a revision. No entry has the revision 0.
fn page(after: Option<Revision>, limit: u32) -> Args {
    Args::of([after.unwrap_or_default().to_string(), limit.to_string()])
}

pub(super) fn committed((records, summaries): &Records) -> Result<Vec<Committed>, StoreError> {
    let committed = |(text, values): (&String, &Vec<Option<String>>)| {
        let stored = StoredRecord::parse(text)?;
        let mut record = stored.record()?;
        for (key, value) in stored.keys.iter().zip(values) {
            let row = Row::read(*key, value.as_ref())?;
            record.summaries.push(Summary::new(*key, row.message()?, row.count()));
        }
        rules::check_id(&record, stored.id)?;
        Ok(Committed::new(stored.revision, record).undone(stored.undone_by))
    };
    records.iter().zip(summaries).map(committed).collect()
}

pub(super) async fn prunes(
    store: &Shared,
    keys: &SessionKeys,
    after: Option<Revision>,
    limit: u32,
) -> Result<Vec<Pruned>, StoreError> {
    let call = Call { script: &SCRIPTS.prunes, keys, args: page(after, limit) };
    let found: Option<Vec<String>> = store.connections.call("prunes", &call).await?;
    found.ok_or_else(|| rules::not_found("prunes"))?.iter().map(|text| read_pruned(text)).collect()
}

pub(super) async fn appends(
    store: &Shared,
    keys: &SessionKeys,
    from: Seq,
    limit: u32,
) -> Result<Vec<LoggedAppend>, StoreError> {
    let call = Call { script: &SCRIPTS.appends, keys, args: Args::of([from.to_string(), limit.to_string()]) };
    let found: Option<(Vec<String>, Vec<Option<String>>)> = store.connections.call("appends", &call).await?;
    let (tokens, receipts) = found.ok_or_else(|| rules::not_found("appends"))?;
    let logged = |(token, receipt): (String, Option<String>)| {
        let receipt = receipt.ok_or_else(|| corrupt("the answer to an append is missing"))?;
        let Receipt { appended, time, .. } = Receipt::parse(&receipt)?;
        Ok(LoggedAppend::new(AppendToken::new(token), appended, time))
    };
    tokens.into_iter().zip(receipts).map(logged).collect()
}

/// The result of the append with a token.
pub(super) async fn appended(
    store: &Shared,
    keys: &SessionKeys,
    token: &AppendToken,
) -> Result<Option<Appended>, StoreError> {
    let mut command = ::redis::cmd("HGET");
    command.arg(keys.one(Key::Receipts)).arg(token.as_str());
    let receipt: Option<String> = store.connections.ask("appended", &command).await?;
    receipt.map(|receipt| Ok(Receipt::parse(&receipt)?.appended)).transpose()
}

/// The saved state.
pub(super) async fn state(store: &Shared, keys: &SessionKeys) -> Result<Option<KeptState>, StoreError> {
    let mut command = ::redis::cmd("HMGET");
    command.arg(keys.one(Key::Session)).arg(&["head", "state_revision", "state_head", "state"]);
    let (session, revision, head, text): StateFields = store.connections.ask("state", &command).await?;
    session.ok_or_else(|| rules::not_found("state"))?;
    let (Some(revision), Some(head), Some(text)) = (revision, head, text) else { return Ok(None) };
    Ok(Some(KeptState::new(StateRevision(revision), Seq(head), text.into())))
}

type StateFields = (Option<u64>, Option<u64>, Option<u64>, Option<String>);

pub(super) async fn delete(store: &Shared, session: &SessionId) -> Result<bool, StoreError> {
    let keys = store.prefix.keys(session);
    let args = Args::of([session.as_str().to_owned()]);
    store.connections.call("delete", &Call { script: &SCRIPTS.delete, keys: &keys, args }).await
}

/// Maximum number of messages of a page of the log, because the server does nothing else while it reads them.
const PAGE_MESSAGES_MAX: u32 = 10_000;
