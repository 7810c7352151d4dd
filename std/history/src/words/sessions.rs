//! A search in the index of a medium that keeps it session by session. The searches make the index: an append costs nothing more, and a
//! session that nobody searches has no index.

use std::collections::HashMap;

use futures::future::try_join_all;

use epitome_core::{Head, Seq};
use epitome_message::search::{Term, query_terms};

use super::{Block, Candidates, Indexed, Queue, READ_MAX, blocks, places_in_rows, searched};
use crate::ext::{PAGE, SearchedSessions, before, scan, unless_gone};
use crate::rows::int;
use crate::{FoundMessage, HistoryStore, LogSearch, Logged, SearchScope, SessionId, StoreError};

/// Maximum number of other messages between two candidates that are read at once.
const NEAR: u64 = 16;

/// The rows of a block, each with its first term.
pub type BlockRows = Vec<(Term, Vec<u8>)>;

/// A medium that keeps rows of the index for each session.
///
/// A prune removes the blocks of the messages that it deletes in the same step, and a deletion removes all. Rows that are damaged are
/// treated as rows that are missing: the next search writes them anew.
pub trait SessionWords: HistoryStore {
    /// The head of a session; `None` if there is none.
    fn head(&self, session: &SessionId) -> impl Future<Output = Result<Option<Head>, StoreError>> + Send;

    /// The rows of these blocks that can have one of the terms, which ascend. `None` if there is no such session.
    fn words(
        &self,
        session: &SessionId,
        blocks: &[Block],
        terms: &[Term],
    ) -> impl Future<Output = Result<Option<KeptWords>, StoreError>> + Send;

    /// Writes the rows of a block, in place of those that it holds of smaller blocks. Does nothing if the stamp of the session has changed.
    fn keep_words(
        &self,
        session: &SessionId,
        stamp: &str,
        block: Block,
        rows: BlockRows,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// The rows that a session has of some blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a store fills it")]
pub struct KeptWords {
    /// Another text after each prune, and for another session of the same id.
    pub stamp: String,
    /// By block its rows; `None` for a block that is not indexed.
    pub rows: Vec<Option<BlockRows>>,
}

/// Finds the messages that are nearest to the words of `search`. Indexes the blocks that it has to read.
///
/// # Errors
/// As [`HistoryStore::search`].
pub async fn search_sessions<S: SessionWords>(
    store: &S,
    search: &LogSearch,
) -> Result<Vec<FoundMessage>, StoreError> {
    let terms = query_terms(&search.words).len() as u64;
    if terms == 0 || search.limit == 0 {
        return Ok(Vec::new());
    }
    let sessions = sessions_of(store, search).await?;
    let (mut messages, mut looked_up) = (0_u64, 0_u64);
    for (_, head) in &sessions {
        let (own, rest) = blocks(int(head.0) - 1);
        messages = messages.saturating_add(searched(search, *head));
        looked_up = looked_up.saturating_add((own.count() as u64).saturating_mul(terms));
        looked_up = looked_up.saturating_add(rest.end.abs_diff(rest.start));
    }
    // To look a term up in a block takes about as long as to read a message.
    if messages <= READ_MAX || looked_up >= messages {
        return scan(store, search).await;
    }
    let mut candidates = Candidates::new(search);
    for (at, (session, head)) in sessions.iter().enumerate() {
        Searched { store, search, session, at, groups: HashMap::new() }.add(*head, &mut candidates).await?;
    }
    let mut queue = Queue::new(&candidates, search);
    loop {
        let mut next = queue.to_read();
        if next.is_empty() {
            return Ok(queue.nearest());
        }
        next.sort_unstable();
        let near = next
            .chunk_by(|one, other| one.0.0 == other.0.0 && number(other).saturating_sub(number(one)) < NEAR);
        let read = near.map(|near| read(store, &sessions, near));
        for (candidate, found) in try_join_all(read).await?.into_iter().flatten() {
            if search.has_message(&found.logged) {
                queue.push(candidate, found);
            }
        }
    }
}

/// A candidate: its session, its block, and its place there.
type Candidate = ((usize, Block), u32);

fn number(((_, block), place): &Candidate) -> u64 {
    block.first.unsigned_abs().saturating_add(u64::from(*place))
}

/// Reads candidates of one session that are near each other.
async fn read<S: SessionWords>(
    store: &S,
    sessions: &[(SessionId, Head)],
    near: &[Candidate],
) -> Result<Vec<(Candidate, FoundMessage)>, StoreError> {
    let (Some(first), Some(last)) = (near.first(), near.last()) else { return Ok(Vec::new()) };
    let Some((session, _)) = sessions.get(first.0.0) else { return Ok(Vec::new()) };
    let (mut found, mut next) = (Vec::with_capacity(near.len()), Some(Seq(number(first))));
    while let Some(first) = next {
        let page = store.log(session, first..Seq(number(last).saturating_add(1)), PAGE).await;
        let Some(page) = unless_gone(page)? else { break };
        for logged in page.messages {
            if let Ok(at) = near.binary_search_by_key(&logged.seq.0, number) {
                found.extend(near.get(at).map(|own| (*own, FoundMessage::new(session.clone(), logged))));
            }
        }
        next = page.next;
    }
    Ok(found)
}

/// The sessions that are searched, with their heads.
async fn sessions_of<S: SessionWords>(
    store: &S,
    search: &LogSearch,
) -> Result<Vec<(SessionId, Head)>, StoreError> {
    if let SearchScope::Session(session) = &search.scope {
        let head = store.head(session).await?;
        return Ok(head.map(|head| (session.clone(), head)).into_iter().collect());
    }
    let mut found = Vec::new();
    let mut pages = SearchedSessions::of(search);
    while let Some(page) = pages.next(store).await? {
        found.extend(page.into_iter().map(|info| (info.id, info.head)));
    }
    Ok(found)
}

/// A session that is searched: its place among the others.
struct Searched<'s, S> {
    store: &'s S,
    search: &'s LogSearch,
    session: &'s SessionId,
    at: usize,
    /// By group that begins before a block, the end of the messages that were read for it, and those with calls or results.
    groups: HashMap<Seq, (Seq, Vec<Logged>)>,
}

impl<S: SessionWords> Searched<'_, S> {
    /// Adds the candidates of the session. One that is gone by now has none.
    async fn add(
        &mut self,
        head: Head,
        candidates: &mut Candidates<(usize, Block)>,
    ) -> Result<(), StoreError> {
        let (store, session) = (self.store, self.session);
        let begin = match self.search.since {
            Some(since) => unless_gone(before(store, session, Seq(0), since).await)?,
            None => Some(Seq(0)),
        };
        let Some(begin) = begin else { return Ok(()) };
        let (whole, behind) = blocks(int(head.0) - 1);
        let looked: Vec<_> = whole.filter_map(|block| Some((block, self.admitted(block, begin)?))).collect();
        if !looked.is_empty() {
            let mut terms: Vec<Term> = candidates.looked_up().collect();
            terms.sort_unstable();
            let wanted: Vec<Block> = looked.iter().map(|(block, _)| *block).collect();
            let Some(kept) = store.words(session, &wanted, &terms).await? else { return Ok(()) };
            for ((block, admitted), rows) in looked.into_iter().zip(kept.rows) {
                let is_whole =
                    |rows: &BlockRows| terms.iter().all(|term| places_in_rows(rows, *term).is_ok());
                let rows = match rows.filter(is_whole) {
                    Some(rows) => rows,
                    None => match self.index(block).await? {
                        Some(rows) => {
                            self.keep(&kept.stamp, block, &rows).await;
                            rows
                        }
                        None => return Ok(()),
                    },
                };
                let find = |term| places_in_rows(&rows, term);
                candidates.add((self.at, block), block.span, admitted, find)?;
            }
        }
        let behind = Block { first: behind.start, span: behind.end - behind.start };
        if behind.span > 0
            && let Some(admitted) = self.admitted(behind, begin)
            && let Some(rows) = self.index(behind).await?
        {
            let find = |term| places_in_rows(&rows, term);
            candidates.add((self.at, behind), behind.span, admitted, find)?;
        }
        Ok(())
    }

    /// By place in a block, whether the message is searched by its number: `Some(None)` if all are, `None` if none is.
    fn admitted(&self, block: Block, begin: Seq) -> Option<Option<Vec<bool>>> {
        if self.search.ranges.is_none() && int(begin.0) <= block.first {
            return Some(None);
        }
        let seqs = (block.first..block.end()).map(|number| Seq(number.unsigned_abs()));
        let admitted: Vec<bool> = seqs.map(|seq| seq >= begin && self.search.has_number(seq)).collect();
        admitted.contains(&true).then_some(Some(admitted))
    }

    /// Writes the rows of a block. The answer of the search does not need them: a store that cannot be written is searched all the same.
    async fn keep(&self, stamp: &str, block: Block, rows: &BlockRows) {
        if let Err(error) = self.store.keep_words(self.session, stamp, block, rows.clone()).await {
            tracing::debug!(session = self.session.as_str(), %error, "the index of words is not written");
        }
    }

    /// The rows of a block, from its texts; `None` if the session is gone.
    async fn index(&mut self, block: Block) -> Result<Option<BlockRows>, StoreError> {
        let mut indexed = Indexed::new();
        let mut next = Some(Seq(block.first.unsigned_abs()));
        while let Some(first) = next {
            let page = self.store.log(self.session, first..Seq(block.end().unsigned_abs()), PAGE).await;
            let Some(page) = unless_gone(page)? else { return Ok(None) };
            for logged in &page.messages {
                let (message, seq, group) = (&logged.entry.message, int(logged.seq.0), logged.entry.anchor);
                let place = block.place(seq)?;
                indexed.add(place, message);
                indexed.add_tools(place, message, group, (seq, int(group.0)));
            }
            next = page.next;
        }
        for group in indexed.missing().into_keys().filter(|group| int(group.0) < block.first) {
            let (read_to, with_calls) = self.groups.entry(group).or_insert((group, Vec::new()));
            let mut next = Some(*read_to).filter(|first| int(first.0) < block.first);
            while let Some(first) = next {
                let page = self.store.log(self.session, first..Seq(block.first.unsigned_abs()), PAGE).await;
                let Some(page) = unless_gone(page)? else { return Ok(None) };
                *read_to = Seq(first.0.saturating_add(page.messages.len() as u64));
                let of_group = page.messages.into_iter().filter(|logged| logged.entry.anchor == group);
                with_calls.extend(of_group.filter(|logged| Indexed::<Seq>::has_tools(&logged.entry.message)));
                next = page.next;
            }
            for logged in with_calls.iter() {
                indexed.add_calls(&logged.entry.message, group, int(logged.seq.0));
            }
        }
        Ok(Some(indexed.finish().into_rows()))
    }
}
