//! The answers of the inspector. Their fields are JSON. Revisions and sequence numbers are integers.

use core::time::Duration;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::UNIX_EPOCH;

use epitome::core::attribution::Retention;
use epitome::core::message::Role;
use epitome::core::{Revision, Seq};
use epitome::history::{
    Committed, CompactionRecord, Live, LogSearch, Logged, LoggedAppend, Pruned, SessionId, StoreErrorKind,
};
use epitome::message::Message;
use futures::executor::block_on;
use serde::Serialize;

use super::changes::{self, Difference};
use crate::args::{OneSessionArgs, StoreArgs};
use crate::commands::session::copy::exists;
use crate::commands::session::line::redact_message;
use crate::commands::session::list::{self, Row};
use crate::commands::session::store::{PAGE, Store};
use crate::commands::sessions::rfc3339;
use crate::commands::show::{Length, Shown};
use crate::failure::{Failure, Result};
use crate::redact::Redactor;

/// Maximum number of messages of an answer.
const MESSAGES_MAX: u32 = 2_000;

/// Maximum number of revisions in an answer: others can be requested by their numbers.
const REVISIONS_MAX: u64 = 500;

/// Maximum number of messages that a search finds.
const FOUND_MAX: u32 = 200;

/// Number of characters of a message's text in its row.
const PREVIEW_CHARS: usize = 300;

/// The store that the server reads.
#[derive(Debug)]
pub(super) struct Inspector {
    pub(super) args: StoreArgs,
    pub(super) store: Store,
    /// Takes secrets out of answers, if redaction is on.
    pub(super) redactor: Option<Mutex<Redactor>>,
}

/// State of a session: a client that has seen it need not request the session again.
#[derive(Debug, Serialize)]
pub(super) struct Head {
    /// Number of appended messages.
    messages: u64,
    revision: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct Session {
    messages: u64,
    revision: u64,
    /// Number of messages and summaries in the next request.
    visible: u64,
    visible_tokens: u64,
    /// The newest first.
    revisions: Vec<Change>,
    /// Summaries in the next request, by the number of the first message that they replace.
    summaries: Vec<VisibleSummary>,
}

/// The changes of a revision.
#[derive(Debug, Serialize)]
struct Change {
    revision: u64,
    /// The names of strategies, `rewind`, `clear`, `uncompact`, `prune`, or `late answer`.
    what: String,
    #[serde(flatten)]
    record: Option<Compacted>,
    /// The revision that an undo has undone.
    undoes: Option<u64>,
    /// Number of messages and summaries that a prune has deleted.
    deleted: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Compacted {
    shortened: u64,
    summaries: u64,
    tokens_before: u64,
    tokens_after: u64,
    undone_by: Option<u64>,
}

/// A summary of the next request.
#[derive(Debug, Serialize)]
struct VisibleSummary {
    key: u64,
    /// Ranges of messages that the summary replaces: the first and the last number of each.
    covers: Vec<(u64, u64)>,
    role: Role,
    tokens: u32,
    text: String,
}

#[derive(Debug, Serialize)]
pub(super) struct Page {
    messages: Vec<Line>,
    /// The number at which the next page begins; `None` at the end of the log.
    next: Option<u64>,
}

/// A message of the log.
#[derive(Debug, Serialize)]
struct Line {
    seq: u64,
    /// The first message of its group.
    anchor: u64,
    role: Role,
    turn: u32,
    tokens: u32,
    pinned: bool,
    /// Whether the message answers a call that is not in the log: no request has it.
    orphan: bool,
    hidden_by: Option<u64>,
    /// The latest revision that shortened it.
    edited_by: Option<u64>,
    pruned_by: Option<u64>,
    /// The revision of the session at the append of the message; `None` if the store does not have it.
    revision: Option<u64>,
    time: Option<String>,
    /// The beginning of its text, on one line.
    text: String,
}

#[derive(Debug, Serialize)]
pub(super) struct Text {
    /// The text as it was appended.
    text: String,
    /// The text in the next request, if the message is shortened.
    shown: Option<String>,
}

impl Inspector {
    pub(super) fn sessions(&self) -> Result<Vec<Row>> {
        list::rows(&self.store, &self.args)
    }

    pub(super) fn head(&self, session: &str) -> Result<Head> {
        let now = self.asked(session, block_on(self.store.tail(&SessionId::new(session))))?;
        Ok(Head { messages: now.head.0, revision: now.revision.0 })
    }

    pub(super) fn session(&self, session: &str) -> Result<Session> {
        let now = self.asked(session, block_on(self.store.load(&SessionId::new(session))))?;
        let records = self.records(session)?;
        let prunes = self.prunes(session)?;
        let mut redactor = self.redactor();
        let summaries = now.live.iter().filter(|live| !live.covers.is_empty());
        Ok(Session {
            messages: now.head.0,
            revision: now.revision.0,
            visible: now.live.len() as u64,
            visible_tokens: now.live.iter().map(|live| live.entry.count.tokens.as_u64()).sum(),
            revisions: changes(now.revision.0, &records, &prunes),
            summaries: summaries.map(|live| VisibleSummary::of(live, redactor.as_deref_mut())).collect(),
        })
    }

    pub(super) fn messages(&self, session: &str, from: u64) -> Result<Page> {
        let id = SessionId::new(session);
        let page =
            self.asked(session, block_on(self.store.log(&id, Seq(from)..Seq(u64::MAX), MESSAGES_MAX)))?;
        let appends = match page.messages.last() {
            Some(last) => self.appends(session, from, last.seq.0)?,
            None => Vec::new(),
        };
        let mut redactor = self.redactor();
        let messages = page.messages.iter().map(|logged| Line::of(logged, &appends, redactor.as_deref_mut()));
        Ok(Page { messages: messages.collect(), next: page.next.map(|next| next.0) })
    }

    pub(super) fn message(&self, session: &str, number: u64) -> Result<Text> {
        let id = SessionId::new(session);
        let page = self.asked(session, block_on(self.store.log(&id, Seq(number)..Seq(number).next(), 1)))?;
        let Some(logged) = page.messages.first() else {
            return Err(Failure::input(format!("there is no message {number} in session {session:?}")));
        };
        let mut redactor = self.redactor();
        let shown = match logged.edited_by {
            Some(_) => {
                let now = self.asked(session, block_on(self.store.load(&id)))?;
                now.live.into_iter().find(|live| live.key == logged.seq && !live.stand_ins.is_empty())
            }
            None => None,
        };
        Ok(Text {
            text: text(logged.seq, &logged.entry, redactor.as_deref_mut(), Length::Full),
            shown: shown.map(|live| text(live.key, &live.entry, redactor.as_deref_mut(), Length::Full)),
        })
    }

    pub(super) fn difference(&self, session: &str, from: u64, to: u64) -> Result<Difference> {
        let newest = self.head(session)?.revision;
        if from > to || to > newest {
            return Err(Failure::input(format!(
                "there is no difference from revision {from} to {to}: the newest revision is {newest}"
            )));
        }
        let records = self.records(session)?;
        let mut redactor = self.redactor();
        let mut difference = Difference::of(&records, from, to);
        for changed in &mut difference.summaries {
            if let Some(summary) = changes::summary(&records, changed.revision, changed.key) {
                // A summary belongs to the turn of the first message that it replaces.
                let (id, key) = (SessionId::new(session), summary.key);
                let first = self.asked(session, block_on(self.store.log(&id, key..key.next(), 1)))?;
                let turn = first.messages.first().map_or(0, |logged| logged.entry.turn.0);
                let shown = shown(
                    key,
                    turn,
                    summary.count.tokens.0,
                    false,
                    &summary.message,
                    redactor.as_deref_mut(),
                );
                changed.text = shown.to_text(Length::Full);
            }
        }
        Ok(difference)
    }

    /// The numbers of the messages nearest to these words.
    pub(super) fn found(&self, session: &str, words: &str) -> Result<Vec<u64>> {
        let search = LogSearch::new(words).in_session(SessionId::new(session)).with_limit(FOUND_MAX);
        let found = self.asked(session, block_on(self.store.search(&search)))?;
        Ok(found.iter().map(|found| found.logged.seq.0).collect())
    }

    /// Takes secrets out of a failure, which may repeat the request or an error of the store.
    pub(super) fn without_secrets(&self, failure: Failure) -> Failure {
        match self.redactor() {
            Some(mut redactor) => match redactor.value(None, failure.message()) {
                Some(message) => Failure::new(failure.code(), message),
                None => failure,
            },
            None => failure,
        }
    }

    fn redactor(&self) -> Option<MutexGuard<'_, Redactor>> {
        let redactor = self.redactor.as_ref()?;
        Some(redactor.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn asked<T>(
        &self,
        session: &str,
        answer: core::result::Result<T, epitome::history::StoreError>,
    ) -> Result<T> {
        let args = OneSessionArgs { store: self.args.clone(), session: session.to_owned(), json: false };
        exists(&args, answer)
    }

    fn records(&self, session: &str) -> Result<Vec<Committed>> {
        let id = SessionId::new(session);
        let mut records: Vec<Committed> = Vec::new();
        loop {
            let after = records.last().map(|it| it.revision);
            let more = self.asked(session, block_on(self.store.records(&id, after, PAGE)))?;
            if more.is_empty() {
                return Ok(records);
            }
            records.extend(more);
        }
    }

    fn prunes(&self, session: &str) -> Result<Vec<Pruned>> {
        let id = SessionId::new(session);
        let mut prunes: Vec<Pruned> = Vec::new();
        loop {
            let after = prunes.last().map(|pruned| pruned.revision);
            match block_on(self.store.prunes(&id, after, PAGE)) {
                Ok(more) if !more.is_empty() => prunes.extend(more),
                Err(error) if error.kind() != StoreErrorKind::Unsupported => {
                    return self.asked(session, Err(error));
                }
                _ => return Ok(prunes),
            }
        }
    }

    /// The appends of the messages from `first` to `last`; empty if the store cannot list them.
    fn appends(&self, session: &str, first: u64, last: u64) -> Result<Vec<LoggedAppend>> {
        let id = SessionId::new(session);
        let mut appends: Vec<LoggedAppend> = Vec::new();
        loop {
            let next = appends.last().map_or(Seq(first), |append| append.appended.head);
            if next.0 > last {
                return Ok(appends);
            }
            match block_on(self.store.appends(&id, next, PAGE)) {
                Ok(more) if !more.is_empty() => appends.extend(more),
                Err(error) if error.kind() != StoreErrorKind::Unsupported => {
                    return self.asked(session, Err(error));
                }
                _ => return Ok(appends),
            }
        }
    }
}

impl VisibleSummary {
    fn of(live: &Live, redactor: Option<&mut Redactor>) -> Self {
        Self {
            key: live.key.0,
            covers: live.covers.iter().map(|range| (range.first.0, range.last.0)).collect(),
            role: live.entry.message.role(),
            tokens: live.entry.count.tokens.0,
            text: text(live.key, &live.entry, redactor, Length::Full),
        }
    }
}

impl Line {
    fn of(logged: &Logged, appends: &[LoggedAppend], redactor: Option<&mut Redactor>) -> Self {
        let Logged { seq, entry, hidden_by, edited_by, pruned_by, .. } = logged;
        let [hidden_by, edited_by, pruned_by] = [hidden_by, edited_by, pruned_by].map(|by| by.map(|by| by.0));
        let at = appends.partition_point(|append| append.appended.head <= *seq);
        let append = appends.get(at).filter(|append| append.appended.first <= *seq);
        let time = append.and_then(|append| append.time);
        let text = text(*seq, entry, redactor, Length::Short);
        let body = text.split_once('\n').map_or("", |(_, body)| body);
        let words: Vec<_> = body.split_whitespace().take(PREVIEW_CHARS).collect();
        Self {
            seq: seq.0,
            anchor: entry.anchor.0,
            role: entry.message.role(),
            turn: entry.turn.0,
            tokens: entry.count.tokens.0,
            pinned: entry.message.attribution().retention == Retention::Pinned,
            orphan: entry.orphan,
            hidden_by,
            edited_by,
            pruned_by,
            revision: append.map(|append| append.appended.revision.0),
            time: time.map(|time| rfc3339(UNIX_EPOCH + Duration::from_millis(time.0))),
            text: words.join(" ").chars().take(PREVIEW_CHARS).collect(),
        }
    }
}

/// The changes of the newest revisions, the newest first.
fn changes(head: u64, records: &[Committed], prunes: &[Pruned]) -> Vec<Change> {
    // A revision without a compaction, an undo or a prune is the append of a late answer.
    let first = head.saturating_sub(REVISIONS_MAX).saturating_add(1);
    let mut changes: Vec<_> = (first..=head).map(|revision| Change::new(revision, "late answer")).collect();
    let mut set = |revision: Revision, changed: Change| {
        let at = revision.0.checked_sub(first).and_then(|at| usize::try_from(at).ok());
        if let Some(change) = at.and_then(|at| changes.get_mut(at)) {
            *change = changed;
        }
    };
    for Committed { revision, record, undone_by, .. } in records {
        set(
            *revision,
            Change {
                record: Some(Compacted::of(record, *undone_by)),
                ..Change::new(revision.0, &record.strategy)
            },
        );
        if let Some(by) = undone_by {
            set(*by, Change { undoes: Some(revision.0), ..Change::new(by.0, "uncompact") });
        }
    }
    for Pruned { revision, messages, summaries, .. } in prunes {
        set(*revision, Change { deleted: Some(messages + summaries), ..Change::new(revision.0, "prune") });
    }
    changes.reverse();
    changes
}

impl Change {
    fn new(revision: u64, what: &str) -> Self {
        Self { revision, what: what.to_owned(), record: None, undoes: None, deleted: None }
    }
}

impl Compacted {
    fn of(record: &CompactionRecord, undone_by: Option<Revision>) -> Self {
        Self {
            shortened: record.edits.len() as u64,
            summaries: record.summaries.len() as u64,
            tokens_before: record.tokens_before,
            tokens_after: record.tokens_after,
            undone_by: undone_by.map(|by| by.0),
        }
    }
}

/// The text of a message in the form of `epitome show`.
fn text(
    seq: Seq,
    entry: &epitome::history::Entry,
    redactor: Option<&mut Redactor>,
    length: Length,
) -> String {
    shown(seq, entry.turn.0, entry.count.tokens.0, entry.orphan, &entry.message, redactor).to_text(length)
}

fn shown(
    seq: Seq,
    turn: u32,
    tokens: u32,
    orphan: bool,
    message: &Message,
    redactor: Option<&mut Redactor>,
) -> Shown {
    let message = redact_message(message, redactor).into_owned();
    Shown { at: usize::try_from(seq.0).unwrap_or(usize::MAX), turn, tokens, orphan, message }
}
