//! All operations on a session, in their order, and their repetition in another store.

use std::collections::{BTreeMap, VecDeque};

use epitome_core::{Head, Revision, Seq};

use super::{Exported, PAGE};
use crate::rules;
use crate::{
    Append, AppendToken, Appended, Committed, CompactionRecord, Entry, HistoryStore, LoggedAppend, NewState,
    Pruned, SessionId, StateRevision, StoreError, StoreErrorKind, Timestamp,
};

/// One operation on a session.
#[derive(Debug, Clone)]
pub(super) enum Event {
    Append {
        token: AppendToken,
        appended: Appended,
        time: Option<Timestamp>,
        entries: Vec<Entry>,
    },
    Commit {
        revision: Revision,
        record: CompactionRecord,
    },
    Uncompact {
        revision: Revision,
        made: Revision,
    },
    Prune(Pruned),
    /// The saved state. It comes last.
    State(Box<str>),
}

/// The operations on a session, up to its head and revision at the time of construction.
#[derive(Debug)]
pub(super) struct Events<'a, S: HistoryStore + ?Sized> {
    /// Name of the operation that reads, for errors.
    operation: &'static str,
    store: &'a S,
    session: &'a SessionId,
    pub(super) head: Head,
    pub(super) revision: Revision,
    appends: Ahead<LoggedAppend>,
    records: Ahead<Committed>,
    prunes: Ahead<Pruned>,
    /// The uncompacts of the records read so far: the revision of the uncompact, and the revision of its record.
    undoings: BTreeMap<Revision, Revision>,
    /// The saved state, until it is returned.
    pub(super) state: Option<Box<str>>,
}

/// Items that were read ahead, the last of them, and whether the list has ended.
#[derive(Debug)]
struct Ahead<T> {
    page: VecDeque<T>,
    last: Option<T>,
    ended: bool,
}

impl<T: Clone> Ahead<T> {
    const fn new() -> Self {
        Self { page: VecDeque::new(), last: None, ended: false }
    }

    fn fill(&mut self, page: Vec<T>) {
        self.ended = page.len() < PAGE as usize;
        self.last = page.last().cloned();
        self.page = page.into();
    }

    fn is_due(&self) -> bool {
        self.page.is_empty() && !self.ended
    }
}

impl<'a, S: HistoryStore + ?Sized> Events<'a, S> {
    pub(super) async fn of(
        operation: &'static str,
        store: &'a S,
        session: &'a SessionId,
    ) -> Result<Self, StoreError> {
        // The state is read before the log. A state that is newer than the log that was read would not fit it.
        let state = match store.state(session).await {
            Err(error) if error.kind() == StoreErrorKind::Unsupported => None,
            kept => kept?.map(|kept| kept.text),
        };
        let now = store.tail(session).await?;
        Ok(Self {
            operation,
            store,
            session,
            head: now.head,
            revision: now.revision,
            appends: Ahead::new(),
            records: Ahead::new(),
            prunes: Ahead::new(),
            undoings: BTreeMap::new(),
            state,
        })
    }

    /// The next operation; `None` after the last.
    pub(super) async fn next(&mut self) -> Result<Option<Event>, StoreError> {
        let (mut at_append, mut at_record, mut at_prune) = (None, None, None);
        self.read_ahead().await?;
        if let Some(next) = self.appends.page.front().filter(|next| next.appended.head <= self.head) {
            at_append = Some(next.appended.revision);
        }
        if let Some(next) = self.records.page.front().filter(|next| next.revision <= self.revision) {
            at_record = Some(next.revision);
        }
        if let Some(next) = self.prunes.page.front().filter(|next| next.revision <= self.revision) {
            at_prune = Some(next.revision);
        }
        let at_undoing = self.undoings.keys().next().copied();
        let first = [at_record, at_prune, at_undoing].into_iter().flatten().min();
        // At one revision, the operation that made the revision comes before the appends. An append that made the
        // revision itself is the only operation that made it.
        match first.filter(|first| at_append.is_none_or(|append| *first <= append)) {
            None if at_append.is_none() => {
                self.ended().await?;
                Ok(self.state.take().map(Event::State))
            }
            None => self.append().await,
            Some(first) if at_record == Some(first) => Ok(self.record()),
            Some(first) if at_prune == Some(first) => Ok(self.prunes.page.pop_front().map(Event::Prune)),
            Some(revision) => {
                Ok(self.undoings.remove(&revision).map(|made| Event::Uncompact { revision, made }))
            }
        }
    }

    async fn read_ahead(&mut self) -> Result<(), StoreError> {
        if self.appends.is_due() {
            let from = self.appends.last.as_ref().map_or(Seq(0), |last| last.appended.head);
            self.appends.fill(self.store.appends(self.session, from, PAGE).await?);
        }
        if self.records.is_due() {
            let after = self.records.last.as_ref().map(|last| last.revision);
            self.records.fill(self.store.records(self.session, after, PAGE).await?);
        }
        if self.prunes.is_due() {
            let after = self.prunes.last.map(|last| last.revision);
            self.prunes.fill(self.store.prunes(self.session, after, PAGE).await?);
        }
        Ok(())
    }

    fn record(&mut self) -> Option<Event> {
        let Committed { revision, record, undone_by } = self.records.page.pop_front()?;
        if let Some(undone_by) = undone_by.filter(|by| *by <= self.revision) {
            self.undoings.insert(undone_by, revision);
        }
        Some(Event::Commit { revision, record })
    }

    async fn append(&mut self) -> Result<Option<Event>, StoreError> {
        let Some(LoggedAppend { token, appended, time, .. }) = self.appends.page.pop_front() else {
            return Ok(None);
        };
        let (mut entries, mut from) = (Vec::new(), Some(appended.first));
        while let Some(first) = from {
            let page = self.store.log(self.session, first..appended.head, PAGE).await?;
            entries.extend(page.messages.into_iter().map(|logged| logged.entry));
            from = page.next;
        }
        Ok(Some(Event::Append { token, appended, time, entries }))
    }

    /// Checks that there was no prune meanwhile. A prune deletes content between two reads, so the pages would not fit
    /// together.
    async fn ended(&self) -> Result<(), StoreError> {
        match self.store.prunes(self.session, Some(self.revision), 1).await?.is_empty() {
            true => Ok(()),
            false => {
                Err(conflict(format!("{}: the session was pruned meanwhile; begin again", self.operation)))
            }
        }
    }
}

/// Repeats the operations of a session in a target session, which is new or has the first operations already.
#[derive(Debug)]
pub(super) struct Replay<'a, T: HistoryStore + ?Sized> {
    /// Name of the operation, for errors.
    operation: &'static str,
    target: &'a T,
    session: &'a SessionId,
    /// Head and revision of the target: the progress of an earlier attempt and of this one.
    reached: (Head, Revision),
    /// Head and revision of the source after the operations so far.
    at: (Head, Revision),
    /// Whether the target session was empty at construction.
    is_new: bool,
}

impl<'a, T: HistoryStore + ?Sized> Replay<'a, T> {
    /// `has_state` is true if a state comes at the end. A target store without support for states is refused before
    /// anything is written.
    pub(super) async fn of(
        operation: &'static str,
        target: &'a T,
        session: &'a SessionId,
        has_state: bool,
    ) -> Result<Self, StoreError> {
        if has_state
            && let Err(error) = target.state(session).await
            && error.kind() == StoreErrorKind::Unsupported
        {
            let context = format!("{operation}: the session has a state, and the other store keeps none");
            return Err(StoreError::new(StoreErrorKind::Unsupported, context));
        }
        let start = (Seq(0), Revision(0));
        let reached = stands(target, session).await?;
        Ok(Self { operation, target, session, reached, at: start, is_new: reached == start })
    }

    /// Repeats one operation. If an earlier attempt has done it, checks that the target has the same operation.
    pub(super) async fn step(&mut self, event: &Event) -> Result<(), StoreError> {
        let after = match event {
            Event::Append { appended, .. } => (appended.head, appended.revision),
            Event::Commit { revision, .. } | Event::Uncompact { revision, .. } => (self.at.0, *revision),
            Event::Prune(pruned) => (self.at.0, pruned.revision),
            Event::State(text) => return self.keep_state(text).await,
        };
        if after.0 < self.at.0 || after.1 < self.at.1 || after == self.at {
            return Err(self.untrue());
        }
        let is_done = after.0 <= self.reached.0 && after.1 <= self.reached.1;
        // A target that differs is not changed.
        if is_done && self.was_done(event).await? {
            self.at = after;
            return Ok(());
        }
        if is_done || self.at != self.reached {
            return Err(self.another());
        }
        let (refused, by_one_step) = match self.done(event).await {
            Ok(true) => {
                (self.at, self.reached) = (after, after);
                return Ok(());
            }
            Ok(false) => (None, (after.0, Revision(self.at.1.0.saturating_add(1)))),
            Err(error) if error.kind() == StoreErrorKind::Conflict => (Some(error), self.at),
            Err(error) => return Err(error),
        };
        let now = stands(self.target, self.session).await?;
        // If the target is further on than one operation leads, another caller has written to it.
        let error = if now.0 <= by_one_step.0 && now.1 <= by_one_step.1 {
            self.reached = now;
            self.untrue()
        } else {
            self.another()
        };
        Err(match refused {
            Some(refused) => error.with_source(refused),
            None => error,
        })
    }

    /// Checks, after all operations, that the target has no further ones.
    pub(super) fn end(&self) -> Result<(), StoreError> {
        if self.at == self.reached {
            return Ok(());
        }
        Err(conflict(format!(
            "{}: the session of that name has gone on since; nothing was changed, give another name",
            self.operation
        )))
    }

    /// After a refusal (`Invalid` or `Corrupt`), deletes the session that this call has made, unless another writer has
    /// continued it. After any other failure the session stays, and the same call again continues from there.
    pub(super) async fn taken_back(&self, error: StoreError) -> StoreError {
        let refused = matches!(error.kind(), StoreErrorKind::Invalid | StoreErrorKind::Corrupt);
        if !refused || !self.is_new || self.reached == (Seq(0), Revision(0)) {
            return error;
        }
        let taken_back = match self.target.tail(self.session).await {
            Ok(now) if (now.head, now.revision) == self.reached => self.target.delete(self.session).await,
            other => other.map(|_| false),
        };
        match taken_back {
            Ok(_) => error,
            Err(_) => {
                let operation = self.operation;
                let context =
                    format!("{operation}: it failed on the way; delete the session that it has begun");
                StoreError::new(error.kind(), context).with_source(error)
            }
        }
    }

    /// Saves the state as the first one, or over the state of an earlier attempt whose head is older. Any other saved
    /// state must have the same text.
    async fn keep_state(&self, text: &str) -> Result<(), StoreError> {
        if self.at != self.reached {
            // The target has more operations; `end` reports it.
            return Ok(());
        }
        let made_from = match self.target.state(self.session).await? {
            Some(kept) if *kept.text == *text => return Ok(()),
            Some(kept) if kept.head < self.at.0 => kept.revision,
            _ => StateRevision::default(),
        };
        let state = NewState::new(made_from, text);
        match self.target.save_state(self.session, &state).await {
            Err(error) if error.kind() == StoreErrorKind::Conflict => Err(self.another().with_source(error)),
            kept => kept.map(|_| ()),
        }
    }

    fn another(&self) -> StoreError {
        conflict(format!("{}: there is another session of that name", self.operation))
    }

    fn untrue(&self) -> StoreError {
        rules::invalid(format!("{}: this step cannot follow the steps before it", self.operation))
    }

    async fn done(&self, event: &Event) -> Result<bool, StoreError> {
        let (target, session) = (self.target, self.session);
        Ok(match event {
            Event::Append { token, appended, time, entries } => {
                let append = Append::new(token, appended.first, entries).at(*time);
                target.append(session, &append).await? == *appended
            }
            Event::Commit { revision, record } => target.commit(session, record).await? == *revision,
            Event::Uncompact { revision, made } => target.uncompact(session, *made).await? == *revision,
            Event::Prune(pruned) => target.prune(session, pruned.through).await? == *pruned,
            Event::State(_) => true,
        })
    }

    /// Whether the target has this operation. Changes nothing.
    async fn was_done(&self, event: &Event) -> Result<bool, StoreError> {
        let (target, session) = (self.target, self.session);
        let before = |revision: Revision| revision.0.checked_sub(1).map(Revision);
        Ok(match event {
            Event::Append { token, appended, entries, .. } => {
                target.appended(session, token).await? == Some(*appended)
                    && self.has(appended, entries).await?
            }
            Event::Commit { revision, record } => {
                let found = target.records(session, before(*revision), 1).await?;
                found.first().is_some_and(|it| it.revision == *revision && is_same(&it.record, record))
            }
            Event::Uncompact { revision, made } => {
                let found = target.records(session, before(*made), 1).await?;
                found.first().is_some_and(|it| it.revision == *made && it.undone_by == Some(*revision))
            }
            Event::Prune(pruned) => {
                target.prunes(session, before(pruned.revision), 1).await?.first() == Some(pruned)
            }
            Event::State(_) => true,
        })
    }

    /// Whether the target has this append with these entries. Messages that were pruned on one side are not compared.
    async fn has(&self, appended: &Appended, entries: &[Entry]) -> Result<bool, StoreError> {
        let (mut from, mut rest) = (Some(appended.first), entries.iter());
        while let Some(first) = from {
            let page = self.target.log(self.session, first..appended.head, PAGE).await?;
            let same = |(there, here): (&Entry, &Entry)| {
                there.message.is_pruned() || here.message.is_pruned() || there.message == here.message
            };
            if !page.messages.iter().map(|logged| &logged.entry).zip(&mut rest).all(same) {
                return Ok(false);
            }
            from = page.next;
        }
        Ok(rest.next().is_none())
    }
}

/// The head and the revision of a session; zeros if there is no session.
async fn stands<T: HistoryStore + ?Sized>(
    store: &T,
    session: &SessionId,
) -> Result<(Head, Revision), StoreError> {
    match store.tail(session).await {
        Ok(now) => Ok((now.head, now.revision)),
        Err(error) if error.kind() == StoreErrorKind::NotFound => Ok((Seq(0), Revision(0))),
        Err(error) => Err(error),
    }
}

/// Whether two records are equal, apart from texts that were pruned.
fn is_same(one: &CompactionRecord, other: &CompactionRecord) -> bool {
    let bare = |record: &CompactionRecord| rules::bare_record(record, |_| true, |_| true);
    let said_the_same = || bare(one).as_ref().unwrap_or(one) == bare(other).as_ref().unwrap_or(other);
    one == other || (rules::is_pruned_record(one) || rules::is_pruned_record(other)) && said_the_same()
}

pub(super) fn conflict(context: impl Into<String>) -> StoreError {
    StoreError::new(StoreErrorKind::Conflict, context)
}

pub(super) async fn copy<S: HistoryStore + ?Sized>(
    operation: &'static str,
    store: &S,
    session: &SessionId,
    target: &dyn HistoryStore,
    to: &SessionId,
) -> Result<Exported, StoreError> {
    let mut events = Events::of(operation, store, session).await?;
    let mut replay = Replay::of(operation, target, to, events.state.is_some()).await?;
    let mut exported = Exported::new(session.clone(), events.head, events.revision);
    let mut go_through = async || {
        while let Some(event) = events.next().await? {
            replay.step(&event).await?;
            exported.count(&event);
        }
        replay.end()
    };
    match go_through().await {
        Ok(()) => Ok(exported),
        Err(error) => Err(replay.taken_back(error).await),
    }
}
