//! A search by a scan, which reads every message of its scope.

use core::ops::Range;
use std::collections::{HashMap, HashSet};

use epitome_core::Seq;
use epitome_message::Str;
use epitome_message::search::MessageSearch;

use super::hide::before;
use super::sessions;
use crate::store::{calls, results};
use crate::{
    FoundMessage, HistoryStore, LogSearch, Logged, SearchScope, SessionId, SessionInfo, StoreError,
    StoreErrorKind,
};

/// Number of messages or sessions per read. A large page keeps the number of reads low, because some stores read a
/// whole session for each.
const PAGE: u32 = 1_024;

/// The maximum gap, in messages, between two results that are read together.
pub(crate) const NEAR: u64 = 16;

/// Finds the nearest messages in one pass over the searched logs. Keeps none of the texts in memory.
pub async fn scan<S: HistoryStore + ?Sized>(
    store: &S,
    search: &LogSearch,
) -> Result<Vec<FoundMessage>, StoreError> {
    let mut scan = Scan {
        search,
        nearest: MessageSearch::new(&search.words),
        looked: 0,
        pages: Vec::new(),
        calls: HashMap::new(),
        earlier: HashSet::new(),
    };
    if scan.nearest.is_blank() || search.limit == 0 {
        return Ok(Vec::new());
    }
    if let SearchScope::Session(session) = &search.scope {
        scan.session(store, session).await?;
        return scan.found(store).await;
    }
    let mut pages = SearchedSessions::of(search);
    while let Some(page) = pages.next(store).await? {
        for info in page {
            scan.session(store, &info.id).await?;
        }
    }
    scan.found(store).await
}

/// The sessions of a search over several sessions, page by page.
pub(crate) struct SearchedSessions<'s> {
    search: &'s LogSearch,
    after: Option<SessionId>,
    is_done: bool,
}

impl<'s> SearchedSessions<'s> {
    pub(crate) fn of(search: &'s LogSearch) -> Self {
        let after = match &search.scope {
            SearchScope::Prefix(prefix) => shortened(prefix),
            _ => None,
        };
        Self { search, after, is_done: false }
    }

    /// The next page of sessions; `None` after the last page.
    pub(crate) async fn next<S: HistoryStore + ?Sized>(
        &mut self,
        store: &S,
    ) -> Result<Option<Vec<SessionInfo>>, StoreError> {
        if self.is_done {
            return Ok(None);
        }
        let mut page = sessions(store, self.after.as_ref(), PAGE).await?;
        let Some(last) = page.last() else { return Ok(None) };
        self.is_done = is_behind(&last.id, self.search);
        self.after = Some(last.id.clone());
        page.retain(|info| {
            info.damage.is_none() && self.search.has_session(&info.id) && is_recent(info, self.search)
        });
        Ok(Some(page))
    }
}

/// A session id that sorts before all ids that begin with `prefix`.
fn shortened(prefix: &str) -> Option<SessionId> {
    let (last, _) = prefix.char_indices().next_back()?;
    Some(SessionId::new(prefix.get(..last).unwrap_or_default()))
}

/// Whether the sessions of the search all come before this one in a list.
fn is_behind(id: &SessionId, search: &LogSearch) -> bool {
    matches!(&search.scope, SearchScope::Prefix(prefix) if !search.has_session(id) && id.as_str() > &**prefix)
}

/// Whether a session may have messages of the searched period.
fn is_recent(info: &SessionInfo, search: &LogSearch) -> bool {
    search.since.is_none_or(|since| info.appended.is_none_or(|appended| appended >= since))
}

struct Scan<'s> {
    search: &'s LogSearch,
    nearest: MessageSearch,
    /// The next number. Each message takes one number, and each range skips one.
    looked: u64,
    /// The pages that were read: the number of the first message, its session and its sequence number.
    pages: Vec<(u64, SessionId, Seq)>,
    /// By group, the ids and the tools of the calls in the messages read from a range.
    calls: HashMap<Seq, Vec<(Str, Str)>>,
    /// The groups that begin before the range and whose earlier messages were read.
    earlier: HashSet<Seq>,
}

impl Scan<'_> {
    /// Scans the messages of a session. A session that was deleted meanwhile has none.
    async fn session<S: HistoryStore + ?Sized>(
        &mut self,
        store: &S,
        session: &SessionId,
    ) -> Result<(), StoreError> {
        let begin = match self.search.since {
            Some(since) => before(store, session, Seq(0), since).await,
            None => Ok(Seq(0)),
        };
        let Some(begin) = unless_gone(begin)? else { return Ok(()) };
        let Some(ranges) = &self.search.ranges else {
            return self.range(store, session, begin..Seq(u64::MAX)).await;
        };
        // Two ranges with less than a page between them are read as one range.
        let is_near =
            |one: &Range<Seq>, next: &Range<Seq>| next.start.0.saturating_sub(one.end.0) < u64::from(PAGE);
        for near in ranges.chunk_by(is_near) {
            if let (Some(first), Some(last)) = (near.first(), near.last()) {
                self.range(store, session, first.start.max(begin)..last.end).await?;
            }
        }
        Ok(())
    }

    async fn range<S: HistoryStore + ?Sized>(
        &mut self,
        store: &S,
        session: &SessionId,
        range: Range<Seq>,
    ) -> Result<(), StoreError> {
        let mut next = Some(range.start).filter(|first| *first < range.end);
        self.calls.clear();
        self.earlier.clear();
        // The next message read is not adjacent to the last message of the range before.
        self.looked = self.looked.saturating_add(1);
        while let Some(first) = next {
            let page = store.log(session, first..range.end, PAGE).await;
            let Some(page) = unless_gone(page)? else { return Ok(()) };
            self.pages.push((self.looked, session.clone(), first));
            for logged in &page.messages {
                let has_tool = self.has_tool(store, session, logged, range.start).await?;
                if has_tool && self.search.has_message(logged) {
                    self.nearest.add(self.looked, &logged.entry.message);
                }
                self.looked = self.looked.saturating_add(1);
            }
            next = page.next;
        }
        Ok(())
    }

    /// Whether a message matches the searched tool. `from` is the number of the first message of the range; the calls
    /// before it may have to be read.
    async fn has_tool<S: HistoryStore + ?Sized>(
        &mut self,
        store: &S,
        session: &SessionId,
        logged: &Logged,
        from: Seq,
    ) -> Result<bool, StoreError> {
        let Some(tool) = &self.search.tool else { return Ok(true) };
        let (message, anchor) = (&logged.entry.message, logged.entry.anchor);
        let mut has_tool = calls(message).any(|call| *call.name == **tool);
        let own = calls(message).map(|call| (call.id.clone(), call.name.clone()));
        let (own, answered): (Vec<_>, Vec<_>) = (own.collect(), results(message).collect());
        if anchor < logged.seq && !answered.is_empty() {
            if anchor < from && self.earlier.insert(anchor) {
                self.look_earlier(store, session, anchor..from).await?;
            }
            let known = self.calls.get(&anchor).map(Vec::as_slice).unwrap_or_default();
            let is_answered = |id: &Str| answered.iter().any(|result| result.call_id == *id);
            has_tool |= known.iter().any(|(id, name)| **name == **tool && is_answered(id));
        }
        if !own.is_empty() {
            self.calls.entry(anchor).or_default().extend(own);
        }
        Ok(has_tool)
    }

    /// Records the calls of a group in the messages before the searched range.
    async fn look_earlier<S: HistoryStore + ?Sized>(
        &mut self,
        store: &S,
        session: &SessionId,
        range: Range<Seq>,
    ) -> Result<(), StoreError> {
        let mut next = Some(range.start);
        while let Some(first) = next {
            let page = store.log(session, first..range.end, PAGE).await;
            let Some(page) = unless_gone(page)? else { return Ok(()) };
            for logged in page.messages.iter().filter(|logged| logged.entry.anchor == range.start) {
                let own = calls(&logged.entry.message).map(|call| (call.id.clone(), call.name.clone()));
                self.calls.entry(range.start).or_default().extend(own);
            }
            next = page.next;
        }
        Ok(())
    }

    /// Reads the nearest messages again. A message that was deleted meanwhile is left out.
    async fn found<S: HistoryStore + ?Sized>(&self, store: &S) -> Result<Vec<FoundMessage>, StoreError> {
        let limit = usize::try_from(self.search.limit).unwrap_or(usize::MAX);
        let mut wanted: Vec<_> = (0_usize..).zip(self.nearest.nearest(limit)).collect();
        wanted.sort_unstable_by_key(|(_, number)| *number);
        let is_near = |(_, one): &(usize, u64), (_, next): &(usize, u64)| {
            next - one < NEAR && self.page(*one) == self.page(*next)
        };
        let mut found = Vec::with_capacity(wanted.len());
        for near in wanted.chunk_by(is_near) {
            let (Some((_, from)), Some((_, to))) = (near.first(), near.last()) else { continue };
            let Some((begin, session, first)) = self.page(*from) else { continue };
            let seq = |number: &u64| Seq(first.0.saturating_add(number.saturating_sub(*begin)));
            let page = store.log(session, seq(from)..Seq(seq(to).0.saturating_add(1)), PAGE).await;
            for logged in unless_gone(page)?.into_iter().flat_map(|page| page.messages) {
                let own = near.iter().find(|(_, number)| seq(number) == logged.seq);
                let is_found =
                    self.search.has_message(&logged) && self.nearest.has_word(&logged.entry.message);
                if let Some((rank, _)) = own.filter(|_| is_found) {
                    found.push((*rank, FoundMessage::new(session.clone(), logged)));
                }
            }
        }
        found.sort_unstable_by_key(|(rank, _)| *rank);
        Ok(found.into_iter().map(|(_, found)| found).collect())
    }

    /// The page that contains the message with this number.
    fn page(&self, number: u64) -> Option<&(u64, SessionId, Seq)> {
        let next = self.pages.partition_point(|(first, ..)| *first <= number);
        self.pages.get(next.checked_sub(1)?)
    }
}

/// Maps the error `NotFound` to `None`.
pub(crate) fn unless_gone<T>(result: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
    match result {
        Err(error) if error.kind() == StoreErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}
