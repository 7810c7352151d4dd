//! Appending.

use epitome_core::{Head, Revision, Seq};
use rusqlite::{Connection, OptionalExtension};
use sha2::{Digest, Sha256};

use super::failure::{Failure, corrupt};
use super::row::{SessionRow, int, number};
use super::sql;
use crate::history::rules::{self, Anchor};
use crate::history::{Append, AppendToken, Appended, Entry, SessionId, StoreError};
use crate::wire::stored;

/// An append with everything about it that can be made before its turn comes.
#[derive(Debug)]
pub(super) struct AppendJob {
    session: SessionId,
    token: AppendToken,
    head: Head,
    entries: Vec<Entry>,
    bodies: Vec<String>,
    digest: [u8; 32],
}

impl AppendJob {
    pub(super) fn new(session: &SessionId, append: &Append<'_>) -> Result<Self, StoreError> {
        let Append { token, head, entries } = *append;
        let bodies = entries
            .iter()
            .map(|entry| stored::encode(&entry.message).map_err(rules::not_storable))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            session: session.clone(),
            token: token.clone(),
            head,
            entries: entries.to_vec(),
            digest: digest(&bodies),
            bodies,
        })
    }

    pub(super) fn run(&self, connection: &Connection) -> Result<Appended, Failure> {
        let found = SessionRow::find(connection, &self.session)?;
        if let Some(row) = found
            && let Some(appended) = self.receipt(connection, row.id)?
        {
            return Ok(appended);
        }
        let first = found.map_or(Seq(0), |row| row.head);
        if self.head != first {
            return Err(rules::head_conflict(self.head, first).into());
        }
        let placement = rules::place(first, &self.entries, |anchor| match found {
            Some(row) => find_anchor(connection, row.id, anchor),
            None => Err(corrupt("append: a message of the log is missing")),
        })?;
        let mut row = match found {
            Some(row) => row,
            None => SessionRow::create(connection, &self.session)?,
        };
        self.insert(connection, row.id, first, &placement.hidden_by)?;

        row.head = Seq(first.0.saturating_add(self.entries.len() as u64));
        row.live_messages = row.live_messages.saturating_add(placement.live_messages);
        row.live_tokens = row.live_tokens.saturating_add(placement.live_tokens);
        if placement.moves_revision {
            row.revision = row.revision.next();
        }
        row.save(connection)?;
        let appended = Appended::new(first, row.head, row.revision);
        self.keep_receipt(connection, row.id, appended)?;
        Ok(appended)
    }

    /// The answer given to this token before.
    fn receipt(&self, connection: &Connection, session: i64) -> Result<Option<Appended>, Failure> {
        let seen = connection
            .prepare_cached(sql::TOKEN)?
            .query_row((session, self.token.as_str().as_bytes()), |row| {
                let appended =
                    Appended::new(Seq(number(row, 1)?), Seq(number(row, 2)?), Revision(number(row, 3)?));
                Ok((row.get::<_, Vec<u8>>(0)?, appended))
            })
            .optional()?;
        match seen {
            Some((digest, appended)) if digest == self.digest => Ok(Some(appended)),
            Some(_) => Err(rules::token_reused().into()),
            None => Ok(None),
        }
    }

    fn keep_receipt(&self, connection: &Connection, session: i64, appended: Appended) -> Result<(), Failure> {
        connection.prepare_cached(sql::NEW_TOKEN)?.execute((
            session,
            self.token.as_str().as_bytes(),
            self.digest,
            int(appended.first.0),
            int(appended.head.0),
            int(appended.revision.0),
        ))?;
        Ok(())
    }

    fn insert(
        &self,
        connection: &Connection,
        session: i64,
        first: Seq,
        hidden_by: &[Option<Revision>],
    ) -> Result<(), Failure> {
        let mut message = connection.prepare_cached(sql::NEW_MESSAGE)?;
        let mut text = connection.prepare_cached(sql::NEW_BODY)?;
        for (((seq, entry), body), hidden_by) in
            (int(first.0)..).zip(&self.entries).zip(&self.bodies).zip(hidden_by)
        {
            message.execute((
                session,
                seq,
                int(entry.anchor.0),
                entry.turn.0,
                entry.count.tokens.0,
                entry.count.basis.as_str(),
                entry.count.counter.as_str(),
                entry.late,
                entry.orphan,
                hidden_by.map(|revision| int(revision.0)),
            ))?;
            text.execute((session, seq, body))?;
            if hidden_by.is_some() {
                settle(connection, session, entry)?;
            }
        }
        Ok(())
    }
}

/// Takes the call that a hidden entry answers off the list of the unanswered ones: the first with its id.
fn settle(connection: &Connection, session: i64, entry: &Entry) -> Result<(), Failure> {
    if let Some(id) = entry.call_id() {
        let mut answer = connection.prepare_cached(sql::ANSWER)?;
        answer.execute((session, int(entry.anchor.0), id.as_bytes()))?;
    }
    Ok(())
}

fn find_anchor(connection: &Connection, session: i64, seq: Seq) -> Result<Anchor, StoreError> {
    let find = || -> rusqlite::Result<Option<Anchor>> {
        let mut statement = connection.prepare_cached(sql::ANCHOR)?;
        let anchor = statement.query_row((session, int(seq.0)), |row| {
            let hidden_by = row.get::<_, Option<i64>>(1)?.map(|_| number(row, 1)).transpose()?;
            Ok(Anchor { anchor: Seq(number(row, 0)?), hidden_by: hidden_by.map(Revision) })
        });
        anchor.optional()
    };
    let found = find().map_err(|error| Failure::from(error).of("append"))?;
    found.ok_or_else(|| corrupt("append: a message of the log is missing"))
}

/// Tells appends under one token apart: by their messages, which alone are the caller's.
fn digest(bodies: &[String]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for body in bodies {
        hash.update((body.len() as u64).to_le_bytes());
        hash.update(body);
    }
    hash.finalize().into()
}
