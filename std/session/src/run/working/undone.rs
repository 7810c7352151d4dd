//! Messages that a run shows after an undo.

use std::collections::BTreeMap;

use epitome_core::Seq;
use epitome_core::attribution::SeqRange;

use super::{Places, Working, moved};
use crate::history::inner::{VisibleIndex, joined};
use crate::history::{Entry, History, Live, Loaded, UnansweredCall};
use crate::session::{SessionError, SessionErrorKind};

impl Working {
    /// Shows the current messages of `stored`, and the messages of the run in their original form. Compactions of the
    /// run that are not stored are taken back. `logged` has the numbers of the messages that the run has stored itself.
    /// Messages that other writers have appended meanwhile are left out.
    pub(in crate::run) fn show_again(
        &mut self,
        stored: &History,
        logged: &BTreeMap<Seq, Seq>,
    ) -> Result<(), SessionError> {
        let numbers = Numbers::new(&self.places, &self.own, logged);
        let mut live: BTreeMap<Seq, Live> = BTreeMap::new();
        live.extend(stored.live().iter().filter_map(|live| numbers.live(live)).map(|live| (live.key, live)));
        let mut late = Vec::new();
        for (number, entry) in self.own.iter().filter(|(number, _)| !logged.contains_key(number)) {
            let leads = entry.anchor == *number;
            let is_led = || live.get(&entry.anchor).is_some_and(|leader| leader.covers.is_empty());
            match () {
                () if entry.orphan => {}
                () if leads || is_led() => drop(live.insert(*number, Live::new(*number, entry.clone()))),
                () => late.push(entry.clone()),
            }
        }
        let unanswered = stored.visible().unanswered().iter().filter_map(|call| numbers.call(call));
        let is_open = |call: &UnansweredCall| !late.iter().any(|answer| call.is_answered_by(answer));
        let mut loaded = Loaded::new(self.visible.head(), self.index().revision().next());
        loaded.unanswered = unanswered.filter(is_open).collect();
        loaded.live = live.into_values().collect();
        let visible = VisibleIndex::of(loaded, &*self.counter).map_err(|error| {
            SessionError::new(SessionErrorKind::Corrupt, "what is left of an undoing cannot be put together")
                .with_source(error)
        })?;
        self.visible = visible.with_late(late);
        self.committed();
        Ok(())
    }
}

/// Translation from the numbers of the stored history to those of the run.
struct Numbers<'w> {
    places: &'w Places,
    own: &'w [(Seq, Entry)],
    /// Numbers of the messages that the run itself has stored.
    logged: BTreeMap<Seq, Seq>,
}

impl<'w> Numbers<'w> {
    fn new(places: &'w Places, own: &'w [(Seq, Entry)], logged: &BTreeMap<Seq, Seq>) -> Self {
        Self { places, own, logged: logged.iter().map(|(number, seq)| (*seq, *number)).collect() }
    }

    /// First number and count of the history's messages when the run began.
    fn loaded(&self) -> (u64, u64) {
        self.places.stored.map_or((0, 0), |(base, end)| (base, end.saturating_sub(base)))
    }

    fn number(&self, seq: Seq) -> Option<Seq> {
        let (base, count) = self.loaded();
        match seq.0 < count {
            true => Some(Seq(seq.0.saturating_add(base))),
            false => self.logged.get(&seq).copied(),
        }
    }

    /// The part of these messages that the run knows.
    fn ranges(&self, ranges: &[SeqRange]) -> Vec<SeqRange> {
        let (base, count) = self.loaded();
        let mut known = Vec::new();
        for range in ranges {
            let last = range.last.0.min(count.saturating_sub(1));
            if range.first.0 < count {
                let [first, last] = [range.first.0, last].map(|seq| Seq(seq.saturating_add(base)));
                known.push(SeqRange { first, last });
            }
            let own = self.logged.range(range.first..=range.last);
            known.extend(own.map(|(_, number)| SeqRange { first: *number, last: *number }));
        }
        joined(known)
    }

    fn own(&self, number: Seq) -> Option<&'w Entry> {
        let at = self.own.binary_search_by_key(&number, |(own, _)| *own).ok()?;
        self.own.get(at).map(|(_, entry)| entry)
    }

    /// A visible message or summary of the history; `None` if the run does not know it.
    fn live(&self, stored: &Live) -> Option<Live> {
        if !stored.covers.is_empty() {
            let covers = self.ranges(&stored.covers);
            let key = covers.first()?.first;
            let mut entry = stored.entry.clone();
            entry.anchor = key;
            entry.turn = self.own(key).map_or_else(|| moved(entry.turn, self.places.turn), |own| own.turn);
            return Some(Live::summary(key, entry, covers));
        }
        let number = self.number(stored.key)?;
        let mut live = stored.clone();
        live.key = number;
        match self.own(number) {
            // The original message with its label, unless stand-ins replace some of its parts.
            Some(own) if live.stand_ins.is_empty() => live.entry = own.clone(),
            Some(own) => (live.entry.anchor, live.entry.turn) = (own.anchor, own.turn),
            None => {
                live.entry.anchor = self.number(live.entry.anchor)?;
                live.entry.turn = moved(live.entry.turn, self.places.turn);
            }
        }
        Some(live)
    }

    fn call(&self, call: &UnansweredCall) -> Option<UnansweredCall> {
        let anchor = self.number(call.anchor)?;
        let turn = self.own(anchor).map_or_else(|| moved(call.turn, self.places.turn), |own| own.turn);
        Some(UnansweredCall::new(call.id.clone(), anchor, turn, call.ordinal))
    }
}
