//! A search that reads every message it looks at.

use core::ops::Range;

use epitome_core::Seq;
use epitome_message::search::MessageSearch;

use super::hide::before;
use crate::{
    FoundMessage, HistoryStore, LogPage, LogSearch, Logged, SearchScope, SessionId, SessionInfo, StoreError,
    StoreErrorKind,
};

/// How many messages or sessions are read at once. A store that reads a whole session to answer is asked seldom.
const PAGE: u32 = 1_024;

/// Of the nearest messages, those with fewer others between them are read at once.
const NEAR: u64 = 16;

/// The nearest messages, by one pass over the logs that are searched. It keeps none of their texts.
pub async fn scan<S: HistoryStore + ?Sized>(
    store: &S,
    search: &LogSearch,
) -> Result<Vec<FoundMessage>, StoreError> {
    let mut scan = Scan { search, nearest: MessageSearch::new(&search.words), looked: 0, pages: Vec::new() };
    if scan.nearest.is_blank() || search.limit == 0 {
        return Ok(Vec::new());
    }
    let mut after = match &search.scope {
        SearchScope::Session(session) => {
            scan.session(store, session).await?;
            return scan.found(store).await;
        }
        SearchScope::Prefix(prefix) => shortened(prefix),
        SearchScope::All => None,
    };
    loop {
        let page = store.list(after.as_ref(), PAGE).await?;
        let Some(last) = page.last() else { break };
        for info in page.iter().filter(|info| search.has_session(&info.id) && is_recent(info, search)) {
            scan.session(store, &info.id).await?;
        }
        after = Some(last.id.clone());
        if is_behind(&last.id, search) {
            break;
        }
    }
    scan.found(store).await
}

/// A session id before all those that begin with `prefix`.
fn shortened(prefix: &str) -> Option<SessionId> {
    let (last, _) = prefix.char_indices().next_back()?;
    Some(SessionId::new(prefix.get(..last).unwrap_or_default()))
}

/// Whether no session of the search follows this one in a list.
fn is_behind(id: &SessionId, search: &LogSearch) -> bool {
    matches!(&search.scope, SearchScope::Prefix(prefix) if !search.has_session(id) && id.as_str() > &**prefix)
}

/// Whether a session may have messages of the time that is searched.
fn is_recent(info: &SessionInfo, search: &LogSearch) -> bool {
    search.since.is_none_or(|since| info.appended.is_none_or(|appended| appended >= since))
}

struct Scan<'s> {
    search: &'s LogSearch,
    nearest: MessageSearch,
    /// How many messages were read. A message is known by the number that were read before it.
    looked: u64,
    /// The pages that were read: the number of the first message, its session and its place there.
    pages: Vec<(u64, SessionId, Seq)>,
}

impl Scan<'_> {
    /// Looks at the messages of a session. One that is gone by now has none.
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
        // Two ranges with less than a page between them are read as one.
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
        while let Some(first) = next {
            let page = store.log(session, first..range.end, PAGE).await;
            let Some(page) = unless_gone(page)? else { return Ok(()) };
            self.pages.push((self.looked, session.clone(), first));
            for logged in &page.messages {
                if self.search.has_message(logged) && self.has_tool(store, session, logged, &page).await? {
                    self.nearest.add(self.looked, &logged.entry.message);
                }
                self.looked = self.looked.saturating_add(1);
            }
            next = page.next;
        }
        Ok(())
    }

    /// Whether a message of a page of the log is searched, by its tool. The first message of its group may stand on an earlier page.
    async fn has_tool<S: HistoryStore + ?Sized>(
        &self,
        store: &S,
        session: &SessionId,
        logged: &Logged,
        page: &LogPage,
    ) -> Result<bool, StoreError> {
        if let Some(has_tool) = self.search.has_tool(logged) {
            return Ok(has_tool);
        }
        let (message, anchor) = (&logged.entry.message, logged.entry.anchor);
        let has_tool = |first: &Logged| self.search.has_tool_in_group(message, Some(&first.entry.message));
        if let Ok(at) = page.messages.binary_search_by_key(&anchor, |own| own.seq) {
            return Ok(page.messages.get(at).is_some_and(has_tool));
        }
        let first = store.log(session, anchor..Seq(anchor.0.saturating_add(1)), 1).await;
        Ok(unless_gone(first)?.is_some_and(|page| page.messages.first().is_some_and(has_tool)))
    }

    /// Reads the nearest messages again. One that is gone by now is left out.
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
            let Some(page) = unless_gone(page)? else { continue };
            for logged in &page.messages {
                let own = near.iter().find(|(_, number)| seq(number) == logged.seq);
                let is_found =
                    self.search.has_message(logged) && self.nearest.has_word(&logged.entry.message);
                if let Some((rank, _)) = own.filter(|_| is_found)
                    && self.has_tool(store, session, logged, &page).await?
                {
                    found.push((*rank, FoundMessage::new(session.clone(), logged.clone())));
                }
            }
        }
        found.sort_unstable_by_key(|(rank, _)| *rank);
        Ok(found.into_iter().map(|(_, found)| found).collect())
    }

    /// The page of a message.
    fn page(&self, number: u64) -> Option<&(u64, SessionId, Seq)> {
        let next = self.pages.partition_point(|(first, ..)| *first <= number);
        self.pages.get(next.checked_sub(1)?)
    }
}

/// `None` where there is no such session.
fn unless_gone<T>(result: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
    match result {
        Err(error) if error.kind() == StoreErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}
