//! A conversation in a store in memory, compacted there as in an application.

use std::collections::BTreeMap;
use std::sync::Arc;

use epitome::core::{Outcome, PlanError, Planner, Revision, Seq, StandIn, TokenCounter};
use epitome::history::{
    AppendToken, CompactionRecord, History, Live, MemoryStore, Notes, SessionId, Timestamp,
};
use epitome::message::Message;
use futures::executor::block_on;

use super::prompt::CountedMessage;
use super::shown::Shown;
use super::words::text_of;
use crate::budget::Asked;
use crate::failure::{Failure, Result};
use crate::strategy::Strategies;
use crate::summarizer;

/// Number of messages per request to the store.
const PAGE: u32 = 500;

/// A session in a store in memory.
pub(in crate::commands) struct Stored {
    history: History,
}

impl Stored {
    /// An empty session.
    pub(in crate::commands) fn new(counter: &Arc<dyn TokenCounter + Send + Sync>) -> Result<Self> {
        let store = Arc::new(MemoryStore::new());
        let history = block_on(History::open(store, SessionId::new("eval"), Arc::clone(counter)))?;
        Ok(Self { history: history.with_clock(|| Timestamp(0)) })
    }

    /// Appends those messages that the session does not have yet.
    pub(in crate::commands) fn append_up_to<'m>(
        &mut self,
        messages: impl Iterator<Item = &'m CountedMessage>,
    ) -> Result<()> {
        let head = self.history.head();
        let new = messages.skip(head.0 as usize).map(|counted| counted.message.clone()).collect();
        block_on(self.history.append(&AppendToken::new(head.to_string()), new))?;
        Ok(())
    }

    /// The size of the next request.
    pub(in crate::commands) fn tokens(&self) -> u64 {
        self.history.index().tokens()
    }

    /// Contents of the next request.
    pub(super) fn shown(&self) -> Shown {
        let mut shown = Shown { tokens: self.tokens(), ..Shown::default() };
        for live in self.visible() {
            match live.covers.is_empty() && live.stand_ins.is_empty() {
                true => drop(shown.whole.insert(live.key.0 as u32)),
                false => shown.new.push(text_of(&live.entry.message)),
            }
            if !live.covers.is_empty() {
                shown.written += live.entry.count.tokens.as_u64();
            }
        }
        shown
    }

    /// The messages of the next request.
    pub(in crate::commands) fn visible(&self) -> impl Iterator<Item = &Live> {
        let positions = self.history.index().projection().flatten();
        positions.filter_map(|position| self.history.live().get(position as usize))
    }

    /// The share of the groups hidden or shortened by a compaction that `expand` brings back byte for byte; `None` if
    /// the compaction hides and shortens none. Undoes the compaction afterwards.
    pub(super) fn recovered(&mut self, strategies: &Strategies, asked: &Asked) -> Result<Option<f64>> {
        let before = self.history.live().to_vec();
        let Some((made, record)) = self.compact(strategies, asked)? else { return Ok(None) };
        let expanded = self.expand(made)?;
        block_on(self.history.uncompact(made))?;
        Ok(share_back(&before, &record, &expanded))
    }

    /// Compacts the session; `None` if there is nothing to do, or if the protected messages do not fit.
    pub(super) fn compact(
        &mut self,
        strategies: &Strategies,
        asked: &Asked,
    ) -> Result<Option<(Revision, CompactionRecord)>> {
        let Some(record) = self.plan(strategies, asked)? else { return Ok(None) };
        let made = block_on(self.history.commit(&record))?;
        Ok(Some((made, record)))
    }

    /// Compacts the session. Returns the tokens of the unchanged messages at the beginning; `None` as for
    /// [`compact`](Self::compact).
    pub(in crate::commands) fn compact_to_prefix(
        &mut self,
        strategies: &Strategies,
        asked: &Asked,
    ) -> Result<Option<u64>> {
        let before: Vec<Live> = self.visible().cloned().collect();
        if self.compact(strategies, asked)?.is_none() {
            return Ok(None);
        }
        let same = before.iter().zip(self.visible()).take_while(|(one, other)| one == other);
        Ok(Some(same.map(|(one, _)| one.entry.count.tokens.as_u64()).sum()))
    }

    fn plan(&self, strategies: &Strategies, asked: &Asked) -> Result<Option<CompactionRecord>> {
        let history = &self.history;
        let messages: Vec<&Message> = history.live().iter().map(|live| &live.entry.message).collect();
        let strategies = strategies.about(|things| {
            (0..).zip(&messages).for_each(|(at, message)| things.look_through(at, *message));
            Ok(())
        })?;
        let view = history.index();
        let (budget, mut planner) = (asked.budget, Planner::new());
        let plan = match strategies.with(|strategy| planner.plan(view, &budget, asked.pass(), strategy)) {
            Ok(Outcome::Planned(plan)) => plan,
            Ok(Outcome::Unchanged(_)) | Err(PlanError::Infeasible(_)) => return Ok(None),
            Err(error) => return Err(Failure::plan(&error, &budget)),
        };
        let written = summarizer::write(&plan, &messages, None, history.counter(), |_| Ok(Vec::new()))?;
        let summaries: Vec<_> = written.iter().map(|(text, tokens)| StandIn::new(text, *tokens)).collect();
        let name = strategies.names().join(",");
        let record =
            history.fill_with(plan, &Notes::default(), &summaries, |ready| history.record(&ready, &name));
        record.map(Some).map_err(|error| Failure::input(format!("--strategy: {error}")))
    }

    /// All messages that a compaction has hidden or shortened, by sequence number.
    fn expand(&self, made: Revision) -> Result<BTreeMap<Seq, Message>> {
        let (mut all, mut next) = (BTreeMap::new(), Some(Seq(0)));
        while let Some(from) = next {
            let page = block_on(self.history.expand(made, from, PAGE))?;
            all.extend(page.messages.into_iter().map(|logged| (logged.seq, logged.entry.message)));
            next = page.next;
        }
        Ok(all)
    }
}

/// The share of the groups with hidden or shortened messages of which `expanded` has all these messages unchanged.
fn share_back(before: &[Live], record: &CompactionRecord, expanded: &BTreeMap<Seq, Message>) -> Option<f64> {
    let mut groups: BTreeMap<Seq, bool> = BTreeMap::new();
    for Live { key, entry, .. } in before.iter().filter(|live| touches(record, live.key)) {
        *groups.entry(entry.anchor).or_insert(true) &= expanded.get(key) == Some(&entry.message);
    }
    let back = groups.values().filter(|back| **back).count();
    (!groups.is_empty()).then(|| back as f64 / groups.len() as f64)
}

/// Whether a compaction hides or shortens this message.
fn touches(record: &CompactionRecord, seq: Seq) -> bool {
    record.hides.iter().any(|range| range.contains(seq)) || record.edits.iter().any(|edit| edit.seq == seq)
}

#[cfg(test)]
mod tests {
    use epitome::tokens::counter_by_name;

    use super::*;
    use crate::amount::Percent;
    use crate::commands::eval::prompt::Prompt;

    fn counter() -> Arc<dyn TokenCounter + Send + Sync> {
        Arc::from(counter_by_name("estimate").unwrap())
    }

    fn messages() -> Vec<CountedMessage> {
        let all = (0..20).flat_map(|turn| {
            let question = Message::user(format!("question {turn} with some more words"));
            [question, Message::assistant(format!("answer {turn} with some more words"))]
        });
        all.map(|message| CountedMessage::of(message, &*counter())).collect()
    }

    fn stored(messages: &[CountedMessage]) -> Stored {
        let mut stored = Stored::new(&counter()).unwrap();
        stored.append_up_to(messages.iter()).unwrap();
        stored
    }

    fn asked(messages: &[CountedMessage], keep: &str) -> Asked {
        Prompt::of(messages).unwrap().budget(keep.parse::<Percent>().unwrap()).unwrap()
    }

    #[test]
    fn what_a_compaction_hides_comes_back_and_the_session_is_as_before() {
        let messages = messages();
        let mut stored = stored(&messages);
        let truncate = Strategies::parse("truncate").unwrap();
        for keep in ["20%", "50%"] {
            assert_eq!(stored.recovered(&truncate, &asked(&messages, keep)).unwrap(), Some(1.0));
            assert_eq!(stored.history.live().len(), messages.len());
        }
        assert_eq!(stored.recovered(&truncate, &asked(&messages, "100%")).unwrap(), None);
    }

    #[test]
    fn a_session_goes_on_with_what_a_compaction_has_left() {
        let messages = messages();
        let mut stored = Stored::new(&counter()).unwrap();
        stored.append_up_to(messages[..30].iter()).unwrap();
        assert_eq!(stored.shown().whole, (0..30).collect());
        let asked = asked(&messages, "25%");
        stored.compact(&Strategies::parse("truncate").unwrap(), &asked).unwrap();
        let before = stored.shown();
        assert!(before.whole.len() < 30 && before.whole.contains(&29), "{before:?}");
        stored.append_up_to(messages.iter()).unwrap();
        let mut expected = before.whole;
        expected.extend(30..40);
        assert_eq!(stored.shown().whole, expected);
        let ledger = Strategies::parse("agent").unwrap();
        stored.compact(&ledger, &asked).unwrap();
        assert!(stored.shown().tokens <= asked.budget.goal().unwrap());
    }

    #[test]
    fn a_group_that_lacks_a_message_or_has_another_text_is_not_back() {
        let messages = messages();
        let mut stored = stored(&messages);
        let before = stored.history.live().to_vec();
        let truncate = Strategies::parse("truncate").unwrap();
        let (made, record) = stored.compact(&truncate, &asked(&messages, "20%")).unwrap().unwrap();
        let expanded = stored.expand(made).unwrap();
        assert_eq!(share_back(&before, &record, &expanded), Some(1.0));
        let groups = expanded.len() as f64;
        let mut without = expanded.clone();
        let (first, _) = without.pop_first().unwrap();
        assert_eq!(share_back(&before, &record, &without), Some((groups - 1.0) / groups));
        let mut changed = expanded;
        changed.insert(first, Message::user("other words"));
        assert_eq!(share_back(&before, &record, &changed), Some((groups - 1.0) / groups));
    }
}
