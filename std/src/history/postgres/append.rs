//! Appending.

use core::ops::Range;
use std::collections::HashMap;

use epitome_core::{Head, OpenKind, Revision, Seq};
use futures::future::{try_join, try_join_all, try_join4};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::failure::Failure;
use super::job::Job;
use super::lease::{Access, Lease, Parameters};
use super::read::find;
use super::row::{self, digest, number, revision, save_session, text, time};
use super::{sql, state};
use crate::history::bodies::Bodies;
use crate::history::rows::{SessionRow, int, part_tokens_text, stored_time};
use crate::history::rules::{self, Anchor, Placement, Standing, corrupt};
use crate::history::{
    Append, AppendToken, Appended, Entry, LoggedAppend, NewState, OwnedState, SessionId, StateOutcome,
    StoreError, Timestamp, remote,
};

/// An append with everything about it that can be made before its turn comes.
#[derive(Debug)]
pub(super) struct AppendJob {
    session: SessionId,
    token: AppendToken,
    head: Head,
    entries: Vec<Entry>,
    bodies: Bodies,
    time: Option<Timestamp>,
    /// What is to be kept in the same step.
    state: Option<OwnedState>,
}

impl AppendJob {
    pub(super) fn new(session: &SessionId, append: &Append<'_>) -> Result<Self, StoreError> {
        let Append { token, head, entries, time } = *append;
        let (session, token) = (session.clone(), token.clone());
        let bodies = Bodies::of(entries)?;
        Ok(Self { session, token, head, entries: entries.to_vec(), bodies, time, state: None })
    }

    /// The same with a state.
    pub(super) fn with_state(self, state: &NewState<'_>) -> Self {
        Self { state: Some(OwnedState::of(state)), ..self }
    }
}

impl Job for AppendJob {
    const NAME: &'static str = "append";
    type Answer = Stored;

    async fn run(&self, lease: &Lease<'_>) -> Result<Stored, Failure> {
        let (found, receipt) = self.find(lease).await?;
        if let Some(receipt) = receipt {
            return self.again(lease, found, receipt).await;
        }
        let first = found.map_or(Seq(0), |row| row.counters.head);
        if self.head != first {
            return Err(rules::head_conflict(self.head, first).into());
        }
        let anchors = match found {
            Some(row) => self.anchors(lease, row.id, first).await?,
            None => HashMap::new(),
        };
        let placement = rules::place(first, &self.entries, |anchor| {
            let missing = || corrupt("append: a message of the log is missing");
            anchors.get(&int(anchor.0)).copied().ok_or_else(missing)
        })?;
        let row = match found {
            Some(row) => row,
            None => match self.create(lease).await? {
                Some(row) => row,
                // Another has created it, and appended: a head of 0 is a thing of the past.
                None => return self.after_another(lease).await,
            },
        };
        let stored = self.insert(lease, row, first, &placement).await?;
        lease.commit().await?;
        Ok(stored)
    }
}

/// What was appended, and what has become of the state that came with it.
type Stored = (Appended, Option<StateOutcome>);

type Receipt = (Vec<u8>, Appended);

impl AppendJob {
    /// The session, and the answer given to this token before.
    async fn find(&self, lease: &Lease<'_>) -> Result<(Option<SessionRow>, Option<Receipt>), Failure> {
        let [lock, seen] = lease.prepare([sql::LOCK_SESSION, sql::TOKEN]).await?;
        let (session, key) = (digest(self.session.as_str()), digest(self.token.as_str()));
        let (session, key) = (session.as_slice(), key.as_slice());
        // In this order on the way: what is read of the tokens is what there is once the session is locked.
        let (one, both): ([&(dyn ToSql + Sync); 1], [&(dyn ToSql + Sync); 2]) =
            ([&session], [&session, &key]);
        let begun = try_join(lease.begin(Access::Write), lease.row(&lock, &one));
        let ((_, found), seen) = try_join(begun, lease.row(&seen, &both)).await?;
        let found = found.as_ref().map(row::session).transpose()?;
        Ok((found, seen.as_ref().map(receipt).transpose()?))
    }

    async fn create(&self, lease: &Lease<'_>) -> Result<Option<SessionRow>, Failure> {
        let [create] = lease.prepare([sql::NEW_SESSION]).await?;
        let name = self.session.as_str();
        let row = lease.row(&create, &[&digest(name).as_slice(), &name.as_bytes()]).await?;
        row.as_ref().map(row::session).transpose()
    }

    /// The answer where another has created the session meanwhile.
    async fn after_another(&self, lease: &Lease<'_>) -> Result<Stored, Failure> {
        lease.commit().await?;
        match self.find(lease).await? {
            (found, Some(receipt)) => self.again(lease, found, receipt).await,
            (Some(row), None) => Err(rules::head_conflict(self.head, row.counters.head).into()),
            (None, None) => {
                Err(remote::unavailable("append: the session was created and deleted meanwhile").into())
            }
        }
    }

    /// The answer to a token that the session knows; its state may still be one to keep.
    async fn again(
        &self,
        lease: &Lease<'_>,
        found: Option<SessionRow>,
        receipt: Receipt,
    ) -> Result<Stored, Failure> {
        let appended = self.repeated(lease, found, receipt).await?;
        let outcome = match found {
            Some(row) => self.keep_state(lease, &row).await?,
            None => None,
        };
        lease.commit().await?;
        Ok((appended, outcome))
    }

    async fn keep_state(&self, lease: &Lease<'_>, row: &SessionRow) -> Result<Option<StateOutcome>, Failure> {
        match &self.state {
            Some(state) => state::keep(lease, row.id, row.counters.head, state).await.map(Some),
            None => Ok(None),
        }
    }

    /// The append that a token stands for.
    async fn repeated(
        &self,
        lease: &Lease<'_>,
        session: Option<SessionRow>,
        (digest, appended): Receipt,
    ) -> Result<Appended, Failure> {
        if digest == self.bodies.digest {
            return Ok(appended);
        }
        // What was pruned cannot be compared any more.
        let [pruned] = lease.prepare([sql::PRUNED_IN]).await?;
        let (first, head) = (int(appended.first.0), int(appended.head.0));
        match lease.row(&pruned, &[&session.map(|row| row.id), &first, &head]).await? {
            Some(_) => Ok(appended),
            None => Err(rules::token_reused().into()),
        }
    }

    /// The messages of the log that entries name as their anchors.
    async fn anchors(
        &self,
        lease: &Lease<'_>,
        session: i64,
        first: Seq,
    ) -> Result<HashMap<i64, Anchor>, Failure> {
        let mut named: Vec<i64> = self
            .entries
            .iter()
            .filter(|entry| entry.anchor < first)
            .map(|entry| int(entry.anchor.0))
            .collect();
        named.sort_unstable();
        named.dedup();
        let [anchor] = lease.prepare([sql::ANCHOR]).await?;
        let anchor = &anchor;
        let found = named.into_iter().map(|seq| async move {
            let row = lease.row(anchor, &[&session, &seq]).await?;
            let read = |row: &Row| {
                Ok::<_, Failure>(Anchor { anchor: Seq(number(row, 0)?), hidden_by: revision(row, 1)? })
            };
            Ok::<_, Failure>(row.as_ref().map(read).transpose()?.map(|anchor| (seq, anchor)))
        });
        Ok(try_join_all(found).await?.into_iter().flatten().collect())
    }

    async fn insert(
        &self,
        lease: &Lease<'_>,
        mut row: SessionRow,
        first: Seq,
        placement: &Placement,
    ) -> Result<Stored, Failure> {
        row.append(self.entries.len(), placement, self.time);
        let appended = Appended::new(first, row.counters.head, row.counters.revision);
        let messages = async {
            for piece in pieces(&self.bodies.texts) {
                self.insert_piece(lease, row.id, first, placement, piece).await?;
            }
            self.settle(lease, row.id, &placement.hidden_by).await
        };
        let receipt = self.keep_receipt(lease, &row, appended);
        let state = self.keep_state(lease, &row);
        let (.., outcome) = try_join4(messages, save_session(lease, &row), receipt, state).await?;
        Ok((appended, outcome))
    }

    async fn insert_piece(
        &self,
        lease: &Lease<'_>,
        session: i64,
        first: Seq,
        placement: &Placement,
        piece: Range<usize>,
    ) -> Result<(), Failure> {
        let entries = self.entries.get(piece.clone()).unwrap_or_default();
        let texts = self.bodies.texts.get(piece.clone()).unwrap_or_default();
        let hidden_by = placement.hidden_by.get(piece.clone()).unwrap_or_default();
        let seqs: Vec<i64> =
            (first.0.saturating_add(piece.start as u64)..).map(int).take(entries.len()).collect();
        let numbers =
            |of: fn(&Entry) -> u64| entries.iter().map(|entry| int(of(entry))).collect::<Vec<i64>>();
        let (anchors, turns) = (numbers(|entry| entry.anchor.0), numbers(|entry| u64::from(entry.turn.0)));
        let tokens = numbers(|entry| entry.count.tokens.as_u64());
        let basis: Vec<&str> = entries.iter().map(|entry| entry.count.basis.as_str()).collect();
        let counters: Vec<&[u8]> = entries.iter().map(|entry| entry.count.counter.as_bytes()).collect();
        let late: Vec<bool> = entries.iter().map(|entry| entry.late).collect();
        let orphan: Vec<bool> = entries.iter().map(|entry| entry.orphan).collect();
        let hidden: Vec<Option<i64>> = hidden_by.iter().map(|by| by.map(|by| int(by.0))).collect();
        let parts: Vec<Option<String>> =
            entries.iter().map(|entry| part_tokens_text(&entry.part_tokens)).collect();
        let standing: Vec<i64> =
            entries.iter().map(|entry| Standing::of(&entry.message).number().into()).collect();
        let [insert] = lease.prepare([sql::NEW_MESSAGES]).await?;
        let columns: Parameters<'_> = &[
            &session, &seqs, &anchors, &turns, &tokens, &basis, &counters, &late, &orphan, &hidden, &texts,
            &parts, &standing,
        ];
        lease.execute(&insert, columns).await?;
        Ok(())
    }

    /// Takes the calls that hidden entries answer off the list of the unanswered ones: of those with an id the first.
    async fn settle(
        &self,
        lease: &Lease<'_>,
        session: i64,
        hidden_by: &[Option<Revision>],
    ) -> Result<(), Failure> {
        let hidden = self.entries.iter().zip(hidden_by).filter(|(_, by)| by.is_some());
        for (entry, _) in hidden {
            if let Some((kind, id)) = entry.answers() {
                let [answer] = lease.prepare([sql::ANSWER]).await?;
                let approval = i64::from(kind == OpenKind::Approval);
                let anchor = int(entry.anchor.0);
                lease.execute(&answer, &[&session, &anchor, &id.as_bytes(), &approval]).await?;
            }
        }
        Ok(())
    }

    async fn keep_receipt(
        &self,
        lease: &Lease<'_>,
        row: &SessionRow,
        appended: Appended,
    ) -> Result<(), Failure> {
        let [insert] = lease.prepare([sql::NEW_TOKEN]).await?;
        let token = self.token.as_str();
        let (first, head, revision) = (int(appended.first.0), int(appended.head.0), int(appended.revision.0));
        let (key, bytes, digest) = (digest(token), token.as_bytes(), self.bodies.digest.as_slice());
        let (key, time) = (key.as_slice(), stored_time(row.counters.appended));
        let columns: [&(dyn ToSql + Sync); 8] =
            [&row.id, &key, &bytes, &digest, &first, &head, &revision, &time];
        lease.execute(&insert, &columns).await?;
        Ok(())
    }
}

/// Pieces of a long append: a statement carries a part of it, so that its buffer does not grow with the whole.
fn pieces(texts: &[String]) -> Vec<Range<usize>> {
    let (mut pieces, mut start, mut bytes) = (Vec::new(), 0, 0_usize);
    for (at, text) in texts.iter().enumerate() {
        bytes = bytes.saturating_add(text.len());
        let end = at.saturating_add(1);
        if bytes >= PIECE_BYTES_MAX || end.saturating_sub(start) >= PIECE_MESSAGES_MAX || end == texts.len() {
            pieces.push(start..end);
            (start, bytes) = (end, 0);
        }
    }
    pieces
}

/// Past this, more messages in one statement save nothing that could be measured.
const PIECE_MESSAGES_MAX: usize = 1_000;

/// A statement has at most 1 GiB; a single text may come to as much.
const PIECE_BYTES_MAX: usize = 8 << 20;

/// What was appended under a token.
#[derive(Debug)]
pub(super) struct FindJob {
    pub(super) session: SessionId,
    pub(super) token: AppendToken,
}

impl Job for FindJob {
    const NAME: &'static str = "appended";
    type Answer = Option<Appended>;

    async fn run(&self, lease: &Lease<'_>) -> Result<Option<Appended>, Failure> {
        let [seen] = lease.prepare([sql::TOKEN]).await?;
        let (session, key) = (digest(self.session.as_str()), digest(self.token.as_str()));
        let (session, key) = (session.as_slice(), key.as_slice());
        let both: [&(dyn ToSql + Sync); 2] = [&session, &key];
        let read = try_join(lease.begin(Access::Read), lease.row(&seen, &both));
        let ((_, seen), ()) = try_join(read, lease.commit()).await?;
        Ok(seen.as_ref().map(receipt).transpose()?.map(|(_, appended)| appended))
    }
}

/// The digest of what was appended under a token, and the answer.
fn receipt(row: &Row) -> Result<Receipt, Failure> {
    let appended = Appended::new(Seq(number(row, 1)?), Seq(number(row, 2)?), Revision(number(row, 3)?));
    Ok((row.try_get(0)?, appended))
}

/// The appends of a session.
#[derive(Debug)]
pub(super) struct AppendsJob {
    pub(super) session: SessionId,
    pub(super) from: Seq,
    pub(super) limit: u32,
}

impl Job for AppendsJob {
    const NAME: &'static str = "appends";
    type Answer = Vec<LoggedAppend>;

    async fn run(&self, lease: &Lease<'_>) -> Result<Vec<LoggedAppend>, Failure> {
        let session = find(lease, &self.session, Self::NAME).await?;
        let [appends] = lease.prepare([sql::APPENDS]).await?;
        let (from, limit) = (int(self.from.0), i64::from(self.limit));
        let rows = lease.rows(&appends, &[&session.id, &from, &limit]).await?;
        lease.commit().await?;
        let read = |row: &Row| {
            let token = AppendToken::new(text(row, 0)?);
            let appended =
                Appended::new(Seq(number(row, 1)?), Seq(number(row, 2)?), Revision(number(row, 3)?));
            Ok(LoggedAppend::new(token, appended, time(row, 4)?))
        };
        rows.iter().map(read).collect()
    }
}
