//! Searches by the index of words.

use epitome_core::Seq;
use epitome_history::rows::{StoredPage, int};
use epitome_history::words::{
    Block, Candidates, Indexed, Queue, READ_MAX, blocks, count, places_in_row, places_in_rows, searched,
};
use epitome_history::{FoundMessage, LogSearch, SearchScope, SessionId};
use epitome_message::search::{Term, query_terms};
use tokio_postgres::Row;

use super::failure::Failure;
use super::job::Job;
use super::lease::{Access, Lease};
use super::row::{self, digest, message, number, ordinal, text, time};
use super::{sql, words};

/// Maximum number of sessions of a search with the index. A search of more sessions reads every message.
const SESSIONS_MAX: usize = 10_000;

/// Maximum number of messages after the blocks in a search with the index. With more, the search reads all messages
/// page by page.
const BEHIND_MAX: u64 = 50_000;

/// Number of sessions per page of the list.
const PAGE: i64 = 1_000;

/// Maximum number of rows of the index per read. Each row has some thousand bytes.
const ROWS_MAX: usize = 4_096;

/// Maximum number of texts per read. A read always has all texts after the last block of one session.
const TEXTS_MAX: i64 = 1_024;

/// Searches with the index; `None` if all messages have to be read.
#[derive(Debug)]
pub(super) struct SearchJob(pub(super) LogSearch);

impl Job for SearchJob {
    type Answer = Option<Vec<FoundMessage>>;

    fn name(&self) -> &'static str {
        "search"
    }

    async fn run(&self, lease: &Lease<'_>) -> Result<Option<Vec<FoundMessage>>, Failure> {
        let search = &self.0;
        let terms = query_terms(&search.words).len() as u64;
        if terms == 0 || search.limit == 0 {
            return Ok(None);
        }
        lease.begin(Access::Read).await?;
        let found = match sessions(lease, search, terms).await? {
            Some(sessions) => Some(nearest(lease, search, &sessions).await?),
            None => None,
        };
        lease.commit().await?;
        Ok(found)
    }
}

/// A session in the scope of a search.
struct Searched {
    id: i64,
    name: SessionId,
    head: Seq,
    /// The first number in the searched period.
    begin: Seq,
}

/// The sessions in the scope of a search, ordered by row id. `None` if they are too many, or have so few messages that
/// all are read.
async fn sessions(
    lease: &Lease<'_>,
    search: &LogSearch,
    terms: u64,
) -> Result<Option<Vec<Searched>>, Failure> {
    let mut sessions = match &search.scope {
        SearchScope::Session(name) => {
            let [find] = lease.prepare([sql::SESSION]).await?;
            let found = lease.row(&find, &[&digest(name.as_str()).as_slice()]).await?;
            let found = found.as_ref().map(row::session).transpose()?;
            let searched = found.map(|row| Searched {
                id: row.id,
                name: name.clone(),
                head: row.counters.head,
                begin: Seq(0),
            });
            searched.into_iter().collect()
        }
        scope => {
            let prefix = if let SearchScope::Prefix(prefix) = scope { prefix.as_bytes() } else { &[] };
            let Some(sessions) = of_prefix(lease, search, prefix).await? else { return Ok(None) };
            sessions
        }
    };
    let messages = sessions.iter().map(|session| searched(search, session.head));
    let messages = messages.fold(0, u64::saturating_add);
    let (mut rows, mut behind) = (0_u64, 0_u64);
    for session in &sessions {
        let (own, rest) = count(int(session.head.0) - 1);
        rows = rows.saturating_add(own.saturating_mul(terms));
        behind = behind.saturating_add(rest);
    }
    // A row of the index takes about as long to read as a message.
    if messages <= READ_MAX || rows.saturating_add(behind) > messages || behind > BEHIND_MAX {
        return Ok(None);
    }
    sessions.sort_unstable_by_key(|session| session.id);
    if let Some(since) = search.since {
        let [before] = lease.prepare([sql::APPENDED_BEFORE]).await?;
        let ids: Vec<i64> = sessions.iter().map(|session| session.id).collect();
        let rows = lease.rows(&before, &[&ids, &int(since.0)]).await?;
        for (session, row) in sessions.iter_mut().zip(&rows) {
            session.begin = Seq(number(row, 0)?);
        }
    }
    Ok(Some(sessions))
}

/// The sessions whose names begin with `prefix`; `None` if they are too many.
async fn of_prefix(
    lease: &Lease<'_>,
    search: &LogSearch,
    prefix: &[u8],
) -> Result<Option<Vec<Searched>>, Failure> {
    let [list] = lease.prepare([sql::SESSIONS]).await?;
    let (mut sessions, mut from) = (Vec::new(), prefix.to_vec());
    loop {
        let rows = lease.rows(&list, &[&from, &PAGE]).await?;
        for row in &rows {
            let name: &[u8] = row.try_get(1)?;
            if !name.starts_with(prefix) {
                return Ok(Some(sessions));
            }
            let appended = time(row, 3)?;
            let is_old = search.since.zip(appended).is_some_and(|(since, appended)| appended < since);
            if !is_old {
                let (id, name) = (row.try_get(0)?, SessionId::new(text(row, 1)?));
                sessions.push(Searched { id, name, head: Seq(number(row, 2)?), begin: Seq(0) });
            }
        }
        if sessions.len() > SESSIONS_MAX {
            return Ok(None);
        }
        let Some(last) = rows.last() else { return Ok(Some(sessions)) };
        // No name comes between a name and the same name with a zero byte appended.
        from = last.try_get(1)?;
        from.push(0);
    }
}

/// The nearest messages of these sessions.
async fn nearest(
    lease: &Lease<'_>,
    search: &LogSearch,
    sessions: &[Searched],
) -> Result<Vec<FoundMessage>, Failure> {
    let mut candidates = Candidates::new(search);
    of_blocks(lease, search, sessions, &mut candidates).await?;
    behind_blocks(lease, search, sessions, &mut candidates).await?;
    let mut queue = Queue::new(&candidates, search);
    let [found] = lease.prepare([sql::FOUND]).await?;
    loop {
        let next = queue.to_read();
        if next.is_empty() {
            return Ok(queue.nearest());
        }
        let (ids, seqs): (Vec<i64>, Vec<i64>) =
            next.iter().map(|((session, block), place)| (*session, block.first + i64::from(*place))).unzip();
        let rows = lease.rows(&found, &[&ids, &seqs]).await?;
        let messages = rows.iter().map(message).collect::<Result<_, _>>()?;
        let page = StoredPage { rows: messages, next: None }.into_page()?;
        for (row, logged) in rows.iter().zip(page.messages) {
            let Some(candidate) = ordinal(row, 18)?.and_then(|at| next.get(at)) else { continue };
            let session = sessions.binary_search_by_key(&candidate.0.0, |session| session.id);
            let session =
                session.ok().and_then(|at| sessions.get(at)).filter(|_| search.has_message(&logged));
            if let Some(session) = session {
                queue.push(*candidate, FoundMessage::new(session.name.clone(), logged));
            }
        }
    }
}

/// Looks the terms up in the blocks of the sessions.
async fn of_blocks(
    lease: &Lease<'_>,
    search: &LogSearch,
    sessions: &[Searched],
    candidates: &mut Candidates<(i64, Block)>,
) -> Result<(), Failure> {
    let [word] = lease.prepare([sql::WORD]).await?;
    let terms: Vec<Term> = candidates.looked_up().collect();
    let numbers: Vec<i64> = terms.iter().map(|term| i64::from(term.0)).collect();
    let mut looked = Vec::new();
    for session in sessions {
        for block in blocks(int(session.head.0) - 1).0 {
            if let Some(admitted) = search.admitted(block, session.begin) {
                looked.push((session.id, block, admitted));
            }
        }
    }
    for some in looked.chunks((ROWS_MAX / terms.len().max(1)).max(1)) {
        let ids: Vec<i64> = some.iter().map(|(id, ..)| *id).collect();
        let firsts: Vec<i64> = some.iter().map(|(_, block, _)| block.first).collect();
        let spans: Vec<i64> = some.iter().map(|(_, block, _)| block.span).collect();
        let rows = lease.rows(&word, &[&ids, &firsts, &spans, &numbers]).await?;
        let mut found: Vec<Vec<Option<&Row>>> = vec![vec![None; terms.len()]; some.len()];
        for row in &rows {
            let (block, term) = (ordinal(row, 0)?, ordinal(row, 1)?);
            let own = block.and_then(|block| found.get_mut(block)).zip(term);
            if let Some(own) = own.and_then(|(terms, term)| terms.get_mut(term)) {
                *own = Some(row);
            }
        }
        for ((id, block, admitted), found) in some.iter().zip(&found) {
            let find = |term: Term| {
                let at = terms.iter().position(|own| *own == term);
                match at.and_then(|at| found.get(at).copied().flatten()) {
                    Some(row) => Ok::<_, Failure>(places_in_row(row.try_get(2)?, term)?),
                    None => Ok(Vec::new()),
                }
            };
            candidates.add((*id, *block), block.span, admitted.clone(), find)?;
        }
    }
    Ok(())
}

/// Adds the messages after the last block of each session.
async fn behind_blocks(
    lease: &Lease<'_>,
    search: &LogSearch,
    sessions: &[Searched],
    candidates: &mut Candidates<(i64, Block)>,
) -> Result<(), Failure> {
    let [texts] = lease.prepare([sql::TEXTS_BEHIND]).await?;
    let behind = sessions.iter().map(|session| {
        let behind = blocks(int(session.head.0) - 1).1;
        (session, Block { first: behind.start, span: behind.end - behind.start })
    });
    let behind: Vec<_> = behind.filter(|(_, block)| block.span > 0).collect();
    let mut rest = &behind[..];
    while !rest.is_empty() {
        let mut count = 0_i64;
        let fits = |(_, block): &&(&Searched, Block)| {
            count += block.span;
            count <= TEXTS_MAX
        };
        let (some, others) = rest.split_at(rest.iter().take_while(fits).count().max(1));
        rest = others;
        let (ids, firsts): (Vec<i64>, Vec<i64>) =
            some.iter().map(|(session, block)| (session.id, block.first)).unzip();
        let mut found: Vec<_> = some.iter().map(|_| Indexed::new()).collect();
        let visit = |row: &Row| {
            let own = ordinal(row, 0)?.and_then(|own| found.get_mut(own).zip(some.get(own)));
            if let Some((indexed, (session, block))) = own {
                let (seq, anchor): (i64, i64) = (row.try_get(1)?, row.try_get(3)?);
                words::add(indexed, block.place(seq)?, (session.id, anchor), seq, row.try_get(2)?);
            }
            Ok(())
        };
        lease.each_row(&texts, &[&ids, &firsts], visit).await?;
        words::earlier(lease, &mut found).await?;
        for ((session, block), indexed) in some.iter().zip(found) {
            let rows = indexed.finish().into_rows();
            let find = |term| places_in_rows(&rows, term).map_err(Failure::from);
            if let Some(admitted) = search.admitted(*block, session.begin) {
                candidates.add((session.id, *block), block.span, admitted, find)?;
            }
        }
    }
    Ok(())
}
