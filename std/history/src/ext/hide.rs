//! Hiding of old messages, of the messages from a given one on, or of all messages.

use core::ops::Range;
use std::collections::BTreeSet;

use epitome_core::attribution::SourceKind;
use epitome_core::message::Role;
use epitome_core::{ClassEstimator, Group, Revision, Seq};

use super::PAGE;
use super::events::conflict;
use crate::rules::invalid;
use crate::visible::VisibleIndex;
use crate::{CompactionRecord, HistoryStore, Live, Pruned, SessionId, StoreError, StoreErrorKind, Timestamp};

/// The strategy name in a record that hides all visible messages.
const CLEAR: &str = "clear";

/// The strategy name in a record that takes back the latest messages. The number of the first of them follows.
const REWIND: &str = "rewind:at=";

/// Maximum number of attempts if other writers change the session meanwhile.
const ATTEMPTS_MAX: usize = 8;

/// The limit of a session that [`retain`](super::HistoryStoreExt::retain) enforces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Keep {
    /// This number of the newest visible messages. Messages that no retention hides stay in addition.
    Messages(u64),
    /// The messages that were appended at this time or later. An append without a time counts as older than the next
    /// append with a time.
    Since(Timestamp),
}

/// The result of a retention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retained {
    /// Number of visible messages and summaries that it hid.
    pub hidden: u64,
    /// The deleted messages and summaries.
    pub pruned: Pruned,
}

/// The messages to hide.
#[derive(Debug, Clone, Copy)]
pub(super) enum Hide {
    All,
    From(Seq),
    AllBut(Keep),
}

impl Hide {
    const fn name(self) -> &'static str {
        match self {
            Self::All => CLEAR,
            Self::From(_) => "rewind",
            Self::AllBut(_) => "retention",
        }
    }

    /// The strategy name in the record.
    fn strategy(self) -> String {
        match self {
            Self::From(at) => format!("{REWIND}{at}"),
            other => other.name().to_owned(),
        }
    }
}

/// The range of the groups that a user took back with this record, by their first messages: all groups of that time, or
/// the groups from a given message on. The range includes groups that a compaction had hidden before. `None` for any
/// other record.
pub(crate) fn taken_back(record: &CompactionRecord) -> Option<Range<Seq>> {
    let strategy = record.strategy.as_str();
    let first = match strategy.strip_prefix(REWIND) {
        Some(at) => at.parse().ok().map(Seq)?,
        None => (strategy == CLEAR).then_some(Seq(0))?,
    };
    Some(first..record.head)
}

/// Hides these messages in one commit. Returns the new revision, and the number of hidden messages and summaries.
pub(super) async fn hide<S: HistoryStore + ?Sized>(
    store: &S,
    session: &SessionId,
    what: Hide,
) -> Result<(Revision, u64), StoreError> {
    let name = what.name();
    for _ in 0..ATTEMPTS_MAX {
        let loaded = store.load(session).await?;
        let (revision, first) = (loaded.revision, loaded.live.first().map(|live| live.key));
        let torn = |error| {
            let context = format!("{name}: the session cannot be put together");
            StoreError::new(StoreErrorKind::Corrupt, context).with_source(error)
        };
        let visible = VisibleIndex::of(loaded, &ClassEstimator::new()).map_err(torn)?;
        let goes = match what {
            Hide::All => visible.index().groups().map(|group| group.leader()).collect(),
            Hide::From(at) => later(&visible, at)?,
            Hide::AllBut(Keep::Messages(count)) => aged(&visible, behind_newest(&visible, count)),
            Hide::AllBut(Keep::Since(time)) => {
                aged(&visible, before(store, session, first.unwrap_or_default(), time).await?)
            }
        };
        let (record, hidden) = record(&visible, &goes, &what.strategy());
        if hidden == 0 {
            return Ok((revision, 0));
        }
        match store.commit(session, &record).await {
            Ok(made) => return Ok((made, hidden)),
            Err(error) if error.kind() == StoreErrorKind::Conflict => {}
            Err(error) => return Err(error),
        }
    }
    Err(conflict(format!("{name}: the session is changed again and again; try again")))
}

/// The leaders of the groups that begin at `at` or later.
fn later(visible: &VisibleIndex, at: Seq) -> Result<BTreeSet<u32>, StoreError> {
    let head = visible.head();
    if at >= head {
        return Err(invalid(format!("rewind: there is no message {at}; the session has {head}")));
    }
    for live in visible.live() {
        if live.key == at && live.entry.anchor < at {
            let anchor = live.entry.anchor;
            return Err(invalid(format!(
                "rewind: message {at} belongs to the group that begins with {anchor}; rewind to that"
            )));
        }
        let (Some(first), Some(last)) = (live.covers.first(), live.covers.last()) else { continue };
        if first.first < at && at <= last.last {
            return Err(invalid(format!(
                "rewind: a summary stands for {} to {}, before {at} and behind it; undo the compaction that made it, or \
                 rewind to {}",
                first.first, last.last, first.first
            )));
        }
    }
    let begins = |group: &Group<'_>| visible.covered_by(group).first().map(|range| range.first);
    let is_later = |group: &Group<'_>| begins(group).is_some_and(|first| first >= at);
    Ok(visible.index().groups().filter(is_later).map(|group| group.leader()).collect())
}

/// Makes the record that hides the groups with these leaders. Returns it with the number of their messages and
/// summaries.
fn record(visible: &VisibleIndex, goes: &BTreeSet<u32>, strategy: &str) -> (CompactionRecord, u64) {
    let goes = |group: &Group<'_>| goes.contains(&group.leader());
    let view = visible.index();
    let mut record = CompactionRecord::new(view.revision(), visible.head());
    record.hides = visible.covered_where(goes);
    record.unanswered = visible.unanswered_where(goes);
    record.strategy = strategy.into();
    record.tokens_before = view.tokens();
    let freed = view.groups().filter(goes).map(|group| group.tokens().as_u64());
    record.tokens_after = view.tokens().saturating_sub(freed.fold(0, u64::saturating_add));
    let hidden = view.groups().filter(goes).map(|group| size(&group));
    (record, hidden.fold(0, u64::saturating_add))
}

fn size(group: &Group<'_>) -> u64 {
    group
        .positions()
        .map(|range| u64::from(range.end.saturating_sub(range.start)))
        .fold(0, u64::saturating_add)
}

/// The leaders of the groups that are entirely before `cut` and that a retention may hide.
fn aged(visible: &VisibleIndex, cut: Seq) -> BTreeSet<u32> {
    let request = last_request(visible);
    let may_go = |group: &Group<'_>| {
        let asked = request.is_some_and(|at| group.positions().any(|range| range.contains(&at)));
        !(asked || group.is_open() || group.is_pinned() || group.is_instruction())
    };
    let old = |group: &Group<'_>| visible.covered_by(group).iter().all(|range| range.last < cut);
    visible.index().groups().filter(|group| may_go(group) && old(group)).map(|group| group.leader()).collect()
}

/// The position of the last message of the user.
fn last_request(visible: &VisibleIndex) -> Option<u32> {
    let is_request = |live: &Live| {
        let message = &live.entry.message;
        let asked = message.attribution().source == SourceKind::Caller && live.entry.answers().is_none();
        message.role() == Role::User && asked
    };
    visible.live().iter().rposition(is_request).and_then(|at| u32::try_from(at).ok())
}

/// The beginning of the newest groups that together have at most `count` messages.
fn behind_newest(visible: &VisibleIndex, count: u64) -> Seq {
    let groups: Vec<_> = visible.index().groups().collect();
    let (mut cut, mut kept) = (visible.head(), 0_u64);
    for group in groups.iter().rev() {
        kept = kept.saturating_add(size(group));
        if kept > count {
            break;
        }
        cut = visible.covered_by(group).first().map_or(cut, |range| range.first);
    }
    cut
}

/// The head after the appends before `time`, beginning with the first visible message. An append without a time counts
/// as earlier than `time` only if a later append with a time is.
pub(crate) async fn before<S: HistoryStore + ?Sized>(
    store: &S,
    session: &SessionId,
    first: Seq,
    time: Timestamp,
) -> Result<Seq, StoreError> {
    let (mut from, mut cut) = (first, Seq(0));
    loop {
        let page = store.appends(session, from, PAGE).await?;
        for logged in &page {
            match logged.time {
                Some(then) if then >= time => return Ok(cut),
                Some(_) => cut = logged.appended.head,
                None => {}
            }
        }
        match page.last() {
            Some(last) => from = last.appended.head,
            None => return Ok(cut),
        }
    }
}
