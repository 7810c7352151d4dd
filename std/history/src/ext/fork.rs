//! Fork: a new session with the beginning of another session.

use std::collections::BTreeMap;

use epitome_core::{Revision, Seq};

use super::PAGE;
use super::events::{Event, Events, conflict};
use crate::rules::invalid;
use crate::{Append, Committed, HistoryStore, SessionId, StoreError, StoreErrorKind};

pub(super) async fn fork<S: HistoryStore + ?Sized>(
    store: &S,
    session: &SessionId,
    at: Seq,
    new: &SessionId,
) -> Result<(), StoreError> {
    let mut events = Events::of("fork", store, session).await?;
    if at == Seq(0) || at > events.head {
        let head = events.head;
        return Err(invalid(format!("fork: {at} is not between 1 and the session's head {head}")));
    }
    cuts_no_group(store, session, at).await?;
    match store.tail(new).await {
        Ok(_) => {
            let why = "fork: there is a session of that name; give another, or delete it if it is what an interrupted fork left";
            return Err(conflict(why));
        }
        Err(error) if error.kind() == StoreErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let kept = kept(store, session, at).await?;
    nothing_pruned(store, session, at, &kept).await?;
    let mut forked =
        Forked { store, new, at, kept, revision: Revision(0), from: BTreeMap::new(), begun: false };
    match forked.go_through(&mut events).await {
        Err(error) if forked.begun => Err(forked.taken_back(error).await),
        done => done,
    }
}

/// The new session during the fork.
struct Forked<'a, S: HistoryStore + ?Sized> {
    store: &'a S,
    new: &'a SessionId,
    at: Seq,
    /// Revisions, in the source session, of the records that the fork takes over.
    kept: Vec<Revision>,
    revision: Revision,
    /// For each of these records, its revision in the source session and its revision in the fork.
    from: BTreeMap<Revision, Revision>,
    /// Whether the new session has content, all of which this call has written.
    begun: bool,
}

impl<S: HistoryStore + ?Sized> Forked<'_, S> {
    async fn go_through(&mut self, events: &mut Events<'_, S>) -> Result<(), StoreError> {
        while let Some(event) = events.next().await? {
            match event {
                Event::Append { appended, .. } if appended.first >= self.at => {}
                Event::Append { token, appended, time, mut entries } => {
                    // The fork omits the other messages of this append. A caller that repeats the append under its
                    // token gets an error, because the fork holds other messages under it.
                    let count = self.at.0.saturating_sub(appended.first.0);
                    entries.truncate(usize::try_from(count).unwrap_or(usize::MAX));
                    self.append(&Append::new(&token, appended.first, &entries).at(time)).await?;
                }
                Event::Commit { revision, mut record } if self.kept.contains(&revision) => {
                    record.parent = self.revision;
                    self.revision = self.store.commit(self.new, &record).await?;
                    self.from.insert(revision, self.revision);
                }
                Event::Prune(pruned) => {
                    // The last revision of the fork that corresponds to the prune's limit in the source.
                    let through = self.from.range(..=pruned.through).next_back().map(|(_, made)| *made);
                    if let Some(through) = through {
                        self.revision = self.store.prune(self.new, through).await?.revision;
                    }
                }
                // A saved state describes the source session, not the fork.
                Event::Commit { .. } | Event::Uncompact { .. } | Event::State(_) => {}
            }
        }
        Ok(())
    }

    async fn append(&mut self, append: &Append<'_>) -> Result<(), StoreError> {
        let appended = self.store.append(self.new, append).await;
        // If the store refuses the messages, the session may belong to another caller. It is not deleted.
        let refused =
            |error: &StoreError| matches!(error.kind(), StoreErrorKind::Conflict | StoreErrorKind::Invalid);
        self.begun = !appended.as_ref().is_err_and(refused);
        self.revision = appended?.revision;
        Ok(())
    }

    /// Deletes the new session, unless another writer has continued it.
    async fn taken_back(&self, error: StoreError) -> StoreError {
        let taken_back = match self.store.tail(self.new).await {
            Ok(left) if left.head <= self.at => self.store.delete(self.new).await.map(|_| ()),
            Err(failed) if failed.kind() != StoreErrorKind::NotFound => Err(failed),
            _ => Ok(()),
        };
        match taken_back {
            Ok(()) => error,
            Err(_) => {
                let context =
                    "fork: it failed on the way; delete the session that it has begun, and try again";
                StoreError::new(error.kind(), context).with_source(error)
            }
        }
    }
}

/// Checks that the message `at` does not continue a group, as [`HistoryStoreExt::rewind`](crate::HistoryStoreExt::rewind)
/// does. The fork would have the calls of the group without the results that stand directly behind them.
async fn cuts_no_group<S: HistoryStore + ?Sized>(
    store: &S,
    session: &SessionId,
    at: Seq,
) -> Result<(), StoreError> {
    let page = store.log(session, at..at.next(), PAGE).await?;
    match page.messages.first().map(|first| first.entry.anchor).filter(|anchor| *anchor < at) {
        Some(anchor) => Err(invalid(format!(
            "fork: message {at} belongs to the group that begins with {anchor}; fork at that"
        ))),
        None => Ok(()),
    }
}

/// The revisions of the records that the fork takes over: the records that are not undone, up to the first that was
/// made from messages at or after `at`.
async fn kept<S: HistoryStore + ?Sized>(
    store: &S,
    session: &SessionId,
    at: Seq,
) -> Result<Vec<Revision>, StoreError> {
    let (mut kept, mut after) = (Vec::new(), None);
    // The keys of the summaries that would be visible in the fork, and whether they were pruned.
    let mut summaries = BTreeMap::new();
    'records: loop {
        let page = store.records(session, after, PAGE).await?;
        for Committed { revision, record, .. } in page.iter().filter(|it| it.undone_by.is_none()) {
            if record.head > at {
                break 'records;
            }
            kept.push(*revision);
            summaries
                .retain(|key, _| !record.hides.iter().any(|range| (range.first..=range.last).contains(key)));
            summaries.extend(record.summaries.iter().map(|it| (it.key, it.message.is_pruned())));
        }
        match page.last() {
            Some(last) => after = Some(last.revision),
            None => break,
        }
    }
    match summaries.iter().find(|(_, is_pruned)| **is_pruned) {
        Some((key, _)) => Err(pruned(&format!("the summary at {key}"))),
        None => Ok(kept),
    }
}

fn pruned(what: &str) -> StoreError {
    StoreError::new(StoreErrorKind::Pruned, format!("fork: {what} would be visible there, and was pruned"))
}

/// Checks that no pruned message would become visible in the fork. A pruned message becomes visible if the fork does
/// not take over the record that hides it.
async fn nothing_pruned<S: HistoryStore + ?Sized>(
    store: &S,
    session: &SessionId,
    at: Seq,
    kept: &[Revision],
) -> Result<(), StoreError> {
    let mut next = Some(Seq(0));
    while let Some(first) = next {
        let page = store.log(session, first..at, PAGE).await?;
        let visible = |by: Option<Revision>| by.is_none_or(|by| kept.binary_search(&by).is_err());
        let gone = page.messages.iter().find(|it| it.pruned_by.is_some() && visible(it.hidden_by));
        if let Some(gone) = gone {
            return Err(pruned(&format!("message {}", gone.seq)));
        }
        next = page.next;
    }
    Ok(())
}
