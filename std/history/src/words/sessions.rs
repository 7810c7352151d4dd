//! The search with an index, for a medium that keeps a separate index for each session. Searches write the index: an
//! append costs nothing more, and a session without searches has no index.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::collections::HashMap;

use futures::stream::{self, StreamExt, TryStreamExt};

use epitome_core::{Head, Seq};
use epitome_message::search::{Term, query_terms};

use super::{Block, Candidates, Indexed, Queue, READ_MAX, blocks, count, places_in_rows, searched};
use crate::ext::{NEAR, PAGE, SearchedSessions, before, scan, unless_gone};
use crate::rows::int;
use crate::store::calls;
use crate::{FoundMessage, HistoryStore, LogSearch, Logged, SearchScope, SessionId, StoreError};

/// Maximum number of rows of the index per read. Each row has some thousand bytes.
const ROWS_MAX: usize = 512;

/// Maximum number of simultaneous requests to the medium.
const AT_ONCE: usize = 8;

/// The rows of a block, each with its first term.
pub type BlockRows = Vec<(Term, Vec<u8>)>;

/// A medium that keeps rows of the index for each session.
///
/// A prune removes the blocks of the messages whose texts it deletes, in the same step. A deletion of a session removes
/// all its blocks. A damaged row counts as missing: the next search writes it again.
pub trait SessionWords: HistoryStore {
    /// The head of a session; `None` if there is none.
    fn head(&self, session: &SessionId) -> impl Future<Output = Result<Option<Head>, StoreError>> + Send;

    /// The rows of these blocks that can contain one of the terms, which are ascending. `None` if there is no such
    /// session.
    fn words(
        &self,
        session: &SessionId,
        blocks: &[Block],
        terms: &[Term],
    ) -> impl Future<Output = Result<Option<KeptWords>, StoreError>> + Send;

    /// Writes the rows of a block, and removes those of the smaller blocks in it. Does nothing if the stamp of the
    /// session has changed.
    fn keep_words(
        &self,
        session: &SessionId,
        stamp: &str,
        block: Block,
        rows: BlockRows,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// The rows of a session for some blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a store fills it")]
pub struct KeptWords {
    /// The stamp of the session. It changes with each prune of messages, and with each new session of the same id.
    pub stamp: String,
    /// For each block its rows; `None` for a block that is not indexed.
    pub rows: Vec<Option<BlockRows>>,
}

/// Finds the messages that are nearest to the words of `search`. Indexes the blocks whose messages it has to read.
///
/// # Errors
/// The errors of [`HistoryStore::search`].
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
        let (own, rest) = count(int(head.0) - 1);
        messages = messages.saturating_add(searched(search, *head));
        looked_up = looked_up.saturating_add(own.saturating_mul(terms)).saturating_add(rest);
    }
    // A lookup of a term in a block takes about as long as reading a message.
    if messages <= READ_MAX || looked_up >= messages {
        return scan(store, search).await;
    }
    let mut candidates = Candidates::new(search);
    let mut terms: Vec<Term> = candidates.looked_up().collect();
    terms.sort_unstable();
    terms.dedup();
    let unkept =
        Unkept { is_refused: AtomicBool::new(false), missing: AtomicU64::new(0), most: messages / 2 };
    let looks: Vec<_> = sessions
        .iter()
        .map(|(session, head)| {
            let looker =
                Looker { store, search, session, terms: &terms, groups: HashMap::new(), unkept: &unkept };
            looker.look(*head)
        })
        .collect();
    let mut looked = stream::iter(looks).buffered(AT_ONCE).enumerate();
    while let Some((at, found)) = looked.next().await {
        let Some(found) = found? else { return scan(store, search).await };
        for Looked { block, admitted, places } in found {
            let find = |term| {
                let own = terms.binary_search(&term).ok().and_then(|at| places.get(at));
                Ok::<_, StoreError>(own.cloned().unwrap_or_default())
            };
            candidates.add((at, block), block.span, admitted, find)?;
        }
    }
    let mut queue = Queue::new(&candidates, search);
    loop {
        let mut next = queue.to_read();
        if next.is_empty() {
            return Ok(queue.nearest());
        }
        next.sort_unstable();
        let is_near = |one: &Candidate, other: &Candidate| {
            one.0.0 == other.0.0 && number(other).saturating_sub(number(one)) < NEAR
        };
        let reads: Vec<_> = next.chunk_by(is_near).map(|near| read(store, &sessions, near)).collect();
        let mut found = stream::iter(reads).buffered(AT_ONCE);
        while let Some(found) = found.try_next().await? {
            for (candidate, found) in found {
                if search.has_message(&found.logged) {
                    queue.push(candidate, found);
                }
            }
        }
    }
}

/// A candidate: the position of its session in the list of searched sessions, its block, and its place in the block.
type Candidate = ((usize, Block), u32);

fn number(((_, block), place): &Candidate) -> u64 {
    block.first.unsigned_abs().saturating_add(u64::from(*place))
}

/// Reads candidates of one session that are close together.
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

/// The sessions in the scope of the search, with their heads.
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

/// The places of the terms in a block.
struct Looked {
    block: Block,
    /// For each place, whether the message's number is in the scope of the search; `None` if all are.
    admitted: Option<Vec<bool>>,
    /// For each looked-up term, the places of the messages that have it.
    places: Vec<Vec<u32>>,
}

/// Looks terms up in the blocks of a session, and in the messages after the blocks.
struct Looker<'s, S> {
    store: &'s S,
    search: &'s LogSearch,
    session: &'s SessionId,
    /// The terms, ascending.
    terms: &'s [Term],
    /// For each group that begins before a block, the end of its messages that were read, and the messages with calls.
    groups: HashMap<Seq, (Seq, Vec<Logged>)>,
    unkept: &'s Unkept,
}

/// The blocks that a search indexes only in memory, because the medium refuses to write them.
struct Unkept {
    is_refused: AtomicBool,
    /// Number of messages in the missing blocks of the sessions so far.
    missing: AtomicU64,
    /// If more messages are missing, the search reads all messages instead.
    most: u64,
}

impl Unkept {
    fn is_refused(&self) -> bool {
        self.is_refused.load(Ordering::Relaxed)
    }

    fn are_too_many(&self) -> bool {
        self.is_refused() && self.missing.load(Ordering::Relaxed) > self.most
    }
}

impl<S: SessionWords> Looker<'_, S> {
    /// The places of the terms in the session. A session that was deleted meanwhile has none. `None` if too many blocks
    /// are missing and the medium refuses to write blocks.
    async fn look(mut self, head: Head) -> Result<Option<Vec<Looked>>, StoreError> {
        let begin = match self.search.since {
            Some(since) => unless_gone(before(self.store, self.session, Seq(0), since).await)?,
            None => Some(Seq(0)),
        };
        let Some(begin) = begin else { return Ok(Some(Vec::new())) };
        let (whole, behind) = blocks(int(head.0) - 1);
        let mut wanted = whole.filter_map(|block| Some((block, self.search.admitted(block, begin)?)));
        let (mut found, at_once) = (Vec::new(), (ROWS_MAX / self.terms.len().max(1)).max(1));
        loop {
            let some: Vec<_> = wanted.by_ref().take(at_once).collect();
            let blocks: Vec<Block> = some.iter().map(|(block, _)| *block).collect();
            if blocks.is_empty() {
                break;
            }
            let kept = self.store.words(self.session, &blocks, self.terms).await?;
            let Some(KeptWords { stamp, rows }) = kept else { return Ok(Some(Vec::new())) };
            let known: Vec<_> = rows.iter().map(|rows| self.places(rows.as_ref()?)).collect();
            let missing = some.iter().zip(&known).filter(|(_, known)| known.is_none());
            let missing = missing.map(|((block, _), _)| block.span.unsigned_abs()).sum();
            self.unkept.missing.fetch_add(missing, Ordering::Relaxed);
            for ((block, admitted), known) in some.into_iter().zip(known) {
                let places = match known {
                    Some(places) => Some(places),
                    None if self.unkept.are_too_many() => return Ok(None),
                    None => self.index(block, Some(&stamp)).await?,
                };
                let Some(places) = places else { return Ok(Some(Vec::new())) };
                found.push(Looked { block, admitted, places });
            }
        }
        let block = Block { first: behind.start, span: behind.end - behind.start };
        if block.span > 0
            && let Some(admitted) = self.search.admitted(block, begin)
            && let Some(places) = self.index(block, None).await?
        {
            found.push(Looked { block, admitted, places });
        }
        Ok(Some(found))
    }

    /// The places of the terms in rows; `None` if a row is damaged.
    fn places(&self, rows: &BlockRows) -> Option<Vec<Vec<u32>>> {
        self.terms.iter().map(|term| places_in_rows(rows, *term).ok()).collect()
    }

    /// The places of the terms in a block, computed from its messages; `None` if the session was deleted. With a stamp,
    /// also writes the block.
    async fn index(
        &mut self,
        block: Block,
        stamp: Option<&str>,
    ) -> Result<Option<Vec<Vec<u32>>>, StoreError> {
        let mut indexed = Indexed::new();
        let (mut left, mut next) = (block.span, Some(Seq(block.first.unsigned_abs())));
        while let Some(first) = next {
            let page = self.store.log(self.session, first..Seq(block.end().unsigned_abs()), PAGE).await;
            let Some(page) = unless_gone(page)? else { return Ok(None) };
            for logged in &page.messages {
                let (message, seq, group) = (&logged.entry.message, int(logged.seq.0), logged.entry.anchor);
                let place = block.place(seq)?;
                indexed.add(place, message);
                indexed.add_tools(place, message, group, (seq, int(group.0)));
                left -= 1;
            }
            next = page.next;
        }
        // The listed session was replaced by a shorter one.
        if left > 0 {
            return Ok(None);
        }
        if stamp.is_some() || self.search.tool.is_some() {
            for group in indexed.missing().into_keys() {
                let with_calls = self.calls(group, block).await?;
                for logged in with_calls {
                    indexed.add_calls(&logged.entry.message, group, int(logged.seq.0));
                }
            }
        }
        let rows = indexed.finish().into_rows();
        let places = self.places(&rows);
        // The result of the search does not depend on the written block, so a medium without write access can be
        // searched too.
        if let Some(stamp) = stamp.filter(|_| !self.unkept.is_refused())
            && let Err(error) = self.store.keep_words(self.session, stamp, block, rows).await
        {
            tracing::debug!(session = self.session.as_str(), %error, "the index of words is not written");
            self.unkept.is_refused.store(true, Ordering::Relaxed);
        }
        Ok(places)
    }

    /// The messages of a group that are before a block and have calls.
    async fn calls(&mut self, group: Seq, block: Block) -> Result<&[Logged], StoreError> {
        let (read_to, with_calls) = self.groups.entry(group).or_insert((group, Vec::new()));
        let mut next = Some(*read_to).filter(|first| int(first.0) < block.first);
        while let Some(first) = next {
            let page = self.store.log(self.session, first..Seq(block.first.unsigned_abs()), PAGE).await;
            let Some(page) = unless_gone(page)? else { break };
            *read_to = Seq(first.0.saturating_add(page.messages.len() as u64));
            let of_group = page.messages.into_iter().filter(|logged| logged.entry.anchor == group);
            with_calls.extend(of_group.filter(|logged| calls(&logged.entry.message).next().is_some()));
            next = page.next;
        }
        Ok(with_calls)
    }
}
