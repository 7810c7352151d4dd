//! A store in memory that omits one step.

use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};
use core::task::Poll;
use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;
use epitome_core::attribution::{Authority, Retention, SourceKind};
use epitome_core::{Revision, Seq};
use epitome_std::history::stored;
use epitome_std::history::{
    Append, AppendToken, Appended, Committed, CompactionRecord, Entry, HistoryStore, KeptState, Loaded,
    LogPage, LoggedAppend, MemoryStore, NewState, Pruned, SessionId, SessionInfo, StateOutcome,
    StateRevision, StoreError, StoreErrorKind,
};
use epitome_std::message::{Attribution, Message, Part};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    ForgetsTokens,
    BelievesTokens,
    LooksAtTheHeadFirst,
    IgnoresTheHead,
    IgnoresTheEnd,
    ReadsTheHeadThenAppends,
    IgnoresTheRevision,
    ReadsTheRevisionThenCommits,
    CommitsWithoutEdits,
    CommitsWithoutSummaries,
    CommitsWithoutUnansweredCalls,
    CommitsNothing,
    TakesTheHeadOfNow,
    ForgetsRecords,
    LosesLate,
    LosesOrphans,
    LosesSizesOfParts,
    LosesCounters,
    CutsTextAtNul,
    SaysHiddenByTheLatest,
    SaysNothingOfEdits,
    LogsBeyondTheRange,
    LogsOnePage,
    RecordsTheOneBefore,
    ListsBackwards,
    ListsTheLastAgain,
    CountsWhatIsHidden,
    CutsTheTail,
    DeletesNoTokens,
    DeletesWhatIsNotThere,
    LoadsWhatIsNotThere,
    FoldsCase,
    CutsNamesAtNul,
    ShowsText,
    UndoesAnyRecord,
    ForgetsUndoing,
    PrunesMore,
    PrunesWithoutAnswer,
    LosesTimes,
    AppendsThenKeepsTheState,
    KeepsTheStateThenAppends,
    RefusesAllThatIsStale,
    IgnoresTheStatesRevision,
    ForgetsStates,
    CutsStatesAtNul,
    KeepsNoStates,
    BelievesSummaries,
    BelievesEdits,
    ForgetsInstructions,
    ForgetsPins,
}

#[derive(Debug)]
pub(crate) struct Broken {
    inner: MemoryStore,
    fault: Fault,
    calls: AtomicU64,
    /// Tokens of appends that the store remembers.
    tokens: Mutex<BTreeMap<(SessionId, String), Appended>>,
}

impl Broken {
    pub(crate) fn new(fault: Fault) -> Self {
        Self { inner: MemoryStore::new(), fault, calls: AtomicU64::new(0), tokens: Mutex::default() }
    }

    fn session(&self, session: &SessionId) -> SessionId {
        match self.fault {
            Fault::FoldsCase => SessionId::new(session.as_str().to_ascii_lowercase()),
            Fault::CutsNamesAtNul => SessionId::new(before_nul(session.as_str())),
            _ => session.clone(),
        }
    }

    fn entry(&self, entry: &Entry) -> Entry {
        let mut entry = entry.clone();
        match self.fault {
            Fault::LosesLate => entry.late = false,
            Fault::LosesOrphans => entry.orphan = false,
            Fault::LosesSizesOfParts => entry.part_tokens.clear(),
            Fault::LosesCounters => entry.count.counter = "test".into(),
            Fault::CutsTextAtNul => {
                let parts = entry.message.parts().iter().map(|part| match part {
                    Part::Text(text) => Part::Text(before_nul(text.as_str()).into()),
                    other => other.clone(),
                });
                entry.message = entry.message.clone().with_parts(parts.collect());
            }
            Fault::ForgetsInstructions => {
                entry.message = claiming(entry.message, |it| it.source = SourceKind::Context)
            }
            Fault::ForgetsPins => {
                entry.message = claiming(entry.message, |it| it.retention = Retention::Normal)
            }
            _ => {}
        }
        entry
    }

    async fn head(&self, session: &SessionId) -> Seq {
        self.inner.load(session).await.map_or(Seq(0), |loaded| loaded.head)
    }

    async fn revision(&self, session: &SessionId) -> Revision {
        self.inner.load(session).await.map_or(Revision(0), |loaded| loaded.revision)
    }

    async fn state_revision(&self, session: &SessionId) -> StateRevision {
        let kept = self.inner.state(session).await.ok().flatten();
        kept.map(|kept| kept.revision).unwrap_or_default()
    }

    fn number(&self) -> u64 {
        self.calls.fetch_add(1, Ordering::Relaxed)
    }
}

fn claiming(message: Message, claim: impl FnOnce(&mut Attribution)) -> Message {
    let mut attribution = message.attribution().clone();
    claim(&mut attribution);
    message.with_attribution(attribution)
}

fn before_nul(text: &str) -> &str {
    text.split('\0').next().unwrap_or_default()
}

fn conflict() -> StoreError {
    StoreError::new(StoreErrorKind::Conflict, "moved")
}

/// Lets other tasks run.
pub(crate) async fn pause() {
    let mut polled = false;
    core::future::poll_fn(|context| {
        context.waker().wake_by_ref();
        if core::mem::replace(&mut polled, true) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

#[async_trait]
impl HistoryStore for Broken {
    async fn append(&self, session: &SessionId, append: &Append<'_>) -> Result<Appended, StoreError> {
        let session = &self.session(session);
        let entries: Vec<Entry> = append.entries.iter().map(|entry| self.entry(entry)).collect();
        let (mut token, mut head) = (append.token.clone(), append.head);
        let time = append.time.filter(|_| self.fault != Fault::LosesTimes);
        let known = self.inner.appended(session, &token).await?;
        match self.fault {
            Fault::ForgetsTokens => token = AppendToken::new(self.number().to_string()),
            Fault::BelievesTokens if known.is_some() => return Ok(known.unwrap()),
            Fault::LooksAtTheHeadFirst if head != self.head(session).await => return Err(conflict()),
            Fault::IgnoresTheHead => head = self.head(session).await,
            Fault::ReadsTheHeadThenAppends if head == self.head(session).await => {
                pause().await;
                head = self.head(session).await;
            }
            Fault::DeletesNoTokens => {
                let key = (session.clone(), token.as_str().to_owned());
                let kept = self.tokens.lock().unwrap().get(&key).copied();
                if let Some(kept) = kept {
                    return Ok(kept);
                }
            }
            _ => {}
        }
        let mut placed = Append::new(&token, head, &entries).at(time);
        if self.fault != Fault::IgnoresTheEnd {
            placed.position = append.position;
        }
        let done = self.inner.append(session, &placed).await;
        match (self.fault, done) {
            (Fault::DeletesNoTokens, Ok(appended)) => {
                let key = (session.clone(), token.as_str().to_owned());
                self.tokens.lock().unwrap().insert(key, appended);
                Ok(appended)
            }
            (Fault::ShowsText, Err(error)) => {
                let said = stored::encode(&entries[0].message).unwrap();
                Err(StoreError::new(error.kind(), said))
            }
            (_, done) => done,
        }
    }

    async fn load(&self, session: &SessionId) -> Result<Loaded, StoreError> {
        match self.inner.load(&self.session(session)).await {
            Err(_) if self.fault == Fault::LoadsWhatIsNotThere => Ok(Loaded::new(Seq(0), Revision(0))),
            loaded => loaded,
        }
    }

    async fn tail(&self, session: &SessionId) -> Result<Loaded, StoreError> {
        let mut tail = self.inner.tail(&self.session(session)).await?;
        if self.fault == Fault::CutsTheTail && tail.live.len() > 2 {
            tail.live.remove(0);
        }
        Ok(tail)
    }

    async fn appended(
        &self,
        session: &SessionId,
        token: &AppendToken,
    ) -> Result<Option<Appended>, StoreError> {
        self.inner.appended(&self.session(session), token).await
    }

    async fn commit(&self, session: &SessionId, record: &CompactionRecord) -> Result<Revision, StoreError> {
        let session = &self.session(session);
        let mut record = record.clone();
        match self.fault {
            Fault::IgnoresTheRevision => record.parent = self.revision(session).await,
            Fault::ReadsTheRevisionThenCommits if record.parent == self.revision(session).await => {
                pause().await;
                record.parent = self.revision(session).await;
            }
            Fault::CommitsWithoutEdits if !record.hides.is_empty() => record.edits.clear(),
            Fault::CommitsWithoutSummaries => record.summaries.clear(),
            Fault::CommitsWithoutUnansweredCalls => record.unanswered.clear(),
            Fault::BelievesSummaries => {
                for summary in &mut record.summaries {
                    summary.message =
                        claiming(summary.message.clone(), |it| it.authority = Authority::Retrieved);
                }
            }
            Fault::BelievesEdits => {
                for stand_in in record.edits.iter_mut().flat_map(|edit| &mut edit.stand_ins) {
                    stand_in.text = Some("[cut]".into());
                }
            }
            Fault::CommitsNothing => return Ok(record.parent.next()),
            Fault::TakesTheHeadOfNow => record.head = self.head(session).await,
            Fault::ForgetsRecords if record.parent != self.revision(session).await => return Err(conflict()),
            _ => {}
        }
        self.inner.commit(session, &record).await
    }

    async fn log(&self, session: &SessionId, range: Range<Seq>, limit: u32) -> Result<LogPage, StoreError> {
        let session = &self.session(session);
        let end = if self.fault == Fault::LogsBeyondTheRange { range.end.next() } else { range.end };
        let mut page = self.inner.log(session, range.start..end, limit).await?;
        let revision = self.revision(session).await;
        for logged in &mut page.messages {
            match self.fault {
                Fault::SaysHiddenByTheLatest => logged.hidden_by = logged.hidden_by.map(|_| revision),
                Fault::SaysNothingOfEdits => logged.edited_by = None,
                _ => {}
            }
        }
        if self.fault == Fault::LogsOnePage {
            page.next = None;
        }
        Ok(page)
    }

    async fn records(
        &self,
        session: &SessionId,
        after: Option<Revision>,
        limit: u32,
    ) -> Result<Vec<Committed>, StoreError> {
        let before = |after: Revision| after.0.checked_sub(1).map(Revision);
        let after = if self.fault == Fault::RecordsTheOneBefore { after.and_then(before) } else { after };
        self.inner.records(&self.session(session), after, limit).await
    }

    async fn uncompact(&self, session: &SessionId, made: Revision) -> Result<Revision, StoreError> {
        let session = &self.session(session);
        let records = self.inner.records(session, None, u32::MAX).await?;
        let latest = records.iter().rfind(|committed| committed.undone_by.is_none());
        let undone = records.iter().any(|known| known.revision == made && known.undone_by.is_some());
        match (self.fault, latest) {
            (Fault::UndoesAnyRecord, Some(latest)) => self.inner.uncompact(session, latest.revision).await,
            (Fault::ForgetsUndoing, _) if undone => Err(conflict()),
            _ => self.inner.uncompact(session, made).await,
        }
    }

    async fn prune(&self, session: &SessionId, through: Revision) -> Result<Pruned, StoreError> {
        let session = &self.session(session);
        let known = self.inner.prunes(session, None, u32::MAX).await?;
        match self.fault {
            Fault::PrunesMore => self.inner.prune(session, self.revision(session).await).await,
            Fault::PrunesWithoutAnswer if known.iter().any(|known| known.through == through) => {
                Err(conflict())
            }
            _ => self.inner.prune(session, through).await,
        }
    }

    async fn prunes(
        &self,
        session: &SessionId,
        after: Option<Revision>,
        limit: u32,
    ) -> Result<Vec<Pruned>, StoreError> {
        self.inner.prunes(&self.session(session), after, limit).await
    }

    async fn appends(
        &self,
        session: &SessionId,
        from: Seq,
        limit: u32,
    ) -> Result<Vec<LoggedAppend>, StoreError> {
        self.inner.appends(&self.session(session), from, limit).await
    }

    async fn append_with_state(
        &self,
        session: &SessionId,
        append: &Append<'_>,
        state: &NewState<'_>,
    ) -> Result<(Appended, StateOutcome), StoreError> {
        match self.fault {
            Fault::None => self.inner.append_with_state(&self.session(session), append, state).await,
            Fault::KeepsTheStateThenAppends => {
                let kept = self.save_state(session, state).await;
                let appended = self.append(session, append).await?;
                Ok((appended, kept.map_or(StateOutcome::Stale, StateOutcome::Kept)))
            }
            Fault::RefusesAllThatIsStale if self.state_revision(session).await > state.made_from => {
                Err(conflict())
            }
            _ => {
                let appended = self.append(session, append).await?;
                pause().await;
                let kept = self.save_state(session, state).await;
                Ok((appended, kept.map_or(StateOutcome::Stale, StateOutcome::Kept)))
            }
        }
    }

    async fn save_state(
        &self,
        session: &SessionId,
        state: &NewState<'_>,
    ) -> Result<StateRevision, StoreError> {
        let session = &self.session(session);
        let known = self.state_revision(session).await;
        match self.fault {
            Fault::IgnoresTheStatesRevision => {
                self.inner.save_state(session, &NewState::new(known, state.text)).await
            }
            Fault::ForgetsStates if state.made_from != known => Err(conflict()),
            Fault::CutsStatesAtNul => {
                self.inner.save_state(session, &NewState::new(state.made_from, before_nul(state.text))).await
            }
            _ => self.inner.save_state(session, state).await,
        }
    }

    async fn state(&self, session: &SessionId) -> Result<Option<KeptState>, StoreError> {
        match self.fault {
            Fault::KeepsNoStates => Err(StoreError::new(StoreErrorKind::Unsupported, "it keeps none")),
            _ => self.inner.state(&self.session(session)).await,
        }
    }

    async fn list(&self, after: Option<&SessionId>, limit: u32) -> Result<Vec<SessionInfo>, StoreError> {
        let mut listed = self.inner.list(after, limit).await?;
        match (self.fault, after) {
            (Fault::ListsBackwards, _) => listed.reverse(),
            (Fault::ListsTheLastAgain, Some(after)) => {
                listed.insert(0, SessionInfo::new(after.clone()));
                listed.truncate(limit as usize);
            }
            (Fault::CountsWhatIsHidden, _) => {
                for info in &mut listed {
                    info.live_messages = info.head.0;
                }
            }
            _ => {}
        }
        Ok(listed)
    }

    async fn delete(&self, session: &SessionId) -> Result<bool, StoreError> {
        let deleted = self.inner.delete(&self.session(session)).await?;
        Ok(deleted || self.fault == Fault::DeletesWhatIsNotThere)
    }
}
