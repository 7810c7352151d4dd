//! A recorded conversation, and the cuts at which it is measured.

use std::collections::{BTreeMap, HashMap, HashSet};

use epitome::core::TokenCounter;
use epitome::core::message::Role;
use epitome::message::Message;
use epitome::wire::WireError;

use super::need::Need;
use super::prompt::{CountedMessage, Prompt};
use super::words::{Finder, runs, written};
use crate::failure::{Failure, Result};
use crate::transcript::Transcript;

/// Places of the cuts, in percent of the assistant messages.
const CUTS: [usize; 4] = [35, 50, 65, 80];
/// Places of the first and the last of several compactions, in percent of the assistant messages.
const ROUNDS: [usize; 2] = [40, 80];
/// Minimum number of messages of the model per compaction, if there are several: the places then differ, with turns
/// between them.
const ROUND_MIN: usize = 5;
/// Number of assistant messages after a cut whose words count as needed.
const AHEAD: usize = 15;

/// One conversation, read and counted.
pub(in crate::commands) struct Case {
    /// The file, and the place in it.
    pub(super) place: String,
    pub(in crate::commands) messages: Vec<CountedMessage>,
    runs: Vec<Vec<u64>>,
}

/// A conversation up to a message of the model, and the information in it that the model needed next.
pub(super) struct Cut<'a> {
    pub(super) case: &'a Case,
    /// The number of messages before the cut.
    pub(super) at: usize,
    pub(super) prompt: Prompt<'a>,
    pub(super) identifiers: Vec<Need<&'a str>>,
    pub(super) runs: Vec<Need<u64>>,
}

impl Case {
    pub(super) fn of(
        place: String,
        transcript: &mut Transcript<'_>,
        counter: &dyn TokenCounter,
    ) -> Result<Self> {
        let mut messages = Vec::with_capacity(transcript.len());
        transcript.for_each(|message| {
            let message = message.to_message();
            let message = message.map_err(|error: WireError| Failure::input(error.to_string()))?;
            messages.push(CountedMessage::of(message, counter));
            Ok(())
        })?;
        Ok(Self::of_messages(place, messages))
    }

    pub(in crate::commands) fn of_messages(place: String, messages: Vec<CountedMessage>) -> Self {
        let runs = messages.iter().map(|message| runs(&message.text)).collect();
        Self { place, messages, runs }
    }

    /// The cuts at which the model needed something. A short conversation has fewer of them, or none.
    pub(super) fn cuts<'a>(&'a self, finder: &Finder) -> Result<Vec<Cut<'a>>> {
        let mut at = self.places(CUTS);
        at.dedup();
        at.retain(|at| *at > 0);
        let cuts = at.into_iter().map(|at| self.cut(at, finder)).collect::<Result<Vec<_>>>()?;
        Ok(cuts.into_iter().filter(|cut| !cut.identifiers.is_empty() || !cut.runs.is_empty()).collect())
    }

    /// Cuts for `rounds` compactions, at least two, with turns between them: the first at 40 % of the messages of the
    /// model, the last at 80 %. `None` for a conversation that is too short.
    pub(super) fn rounds<'a>(&'a self, rounds: usize, finder: &Finder) -> Result<Option<Vec<Cut<'a>>>> {
        let [first, last] = ROUNDS;
        let steps = rounds.saturating_sub(1).max(1);
        let at = self.places((0..rounds).map(|round| first + (last - first) * round / steps));
        let by_model = self.messages.iter().filter(|counted| counted.message.role() == Role::Assistant);
        if by_model.count() < rounds * ROUND_MIN {
            return Ok(None);
        }
        at.into_iter().map(|at| self.cut(at, finder)).collect::<Result<_>>().map(Some)
    }

    /// The positions of the messages of the model at these shares of them, in percent.
    fn places(&self, shares: impl IntoIterator<Item = usize>) -> Vec<usize> {
        let by_model = |(_, counted): &(usize, &CountedMessage)| counted.message.role() == Role::Assistant;
        let steps: Vec<usize> = self.messages.iter().enumerate().filter(by_model).map(|(at, _)| at).collect();
        shares.into_iter().filter_map(|share| steps.get(steps.len() * share / 100).copied()).collect()
    }

    pub(super) fn text(&self, at: u32) -> &str {
        self.messages.get(at as usize).map_or("", |counted| &counted.text)
    }

    pub(super) fn runs(&self, at: u32) -> &[u64] {
        self.runs.get(at as usize).map_or(&[], Vec::as_slice)
    }

    fn cut<'a>(&'a self, at: usize, finder: &Finder) -> Result<Cut<'a>> {
        let prompt = Prompt::of(self.messages.iter().take(at))?;
        // A strategy cannot keep a message that no projection shows.
        let shown: Vec<u32> = prompt.index.view().projection().flatten().collect();
        let (identifiers, runs) = (self.identifiers_needed(at, &shown, finder), self.runs_needed(at, &shown));
        Ok(Cut { case: self, at, prompt, identifiers, runs })
    }

    fn identifiers_needed<'a>(&'a self, at: usize, shown: &[u32], finder: &Finder) -> Vec<Need<&'a str>> {
        let mut before: HashMap<&str, Vec<u32>> = HashMap::new();
        for position in shown {
            for identifier in finder.identifiers(self.text(*position)) {
                let stands_in = before.entry(identifier).or_default();
                if stands_in.last() != Some(position) {
                    stands_in.push(*position);
                }
            }
        }
        let needed = self.needed(
            at,
            |message| finder.identifiers(&written(message)).map(str::to_owned).collect::<Vec<_>>(),
            |position| finder.identifiers(self.text(position)).map(str::to_owned).collect(),
        );
        let needs = needed.into_iter().filter_map(|(identifier, needed_at)| {
            let (unit, stands_in) = before.get_key_value(identifier.as_str())?;
            Some(Need { unit: *unit, stands_in: stands_in.clone(), needed_at })
        });
        needs.collect()
    }

    fn runs_needed(&self, at: usize, shown: &[u32]) -> Vec<Need<u64>> {
        let mut before: HashMap<u64, Vec<u32>> = HashMap::new();
        for position in shown {
            for run in self.runs(*position) {
                let stands_in = before.entry(*run).or_default();
                if stands_in.last() != Some(position) {
                    stands_in.push(*position);
                }
            }
        }
        let needed =
            self.needed(at, |message| runs(&written(message)), |position| self.runs(position).to_vec());
        let needs = needed.into_iter().filter_map(|(unit, needed_at)| {
            Some(Need { unit, stands_in: before.get(&unit)?.clone(), needed_at })
        });
        needs.collect()
    }

    /// The units in the next messages of the model that no message after the cut has shown before, each with the
    /// message that needs it.
    fn needed<T: Clone + Ord + core::hash::Hash + Eq>(
        &self,
        at: usize,
        written: impl Fn(&Message) -> Vec<T>,
        shown: impl Fn(u32) -> Vec<T>,
    ) -> BTreeMap<T, u32> {
        let (mut needed, mut seen, mut steps) = (BTreeMap::new(), HashSet::new(), 0);
        for (position, CountedMessage { message, .. }) in (0_u32..).zip(&self.messages).skip(at) {
            if message.role() == Role::Assistant {
                if steps == AHEAD {
                    break;
                }
                steps += 1;
                for unit in written(message) {
                    if !seen.contains(&unit) {
                        needed.entry(unit).or_insert(position);
                    }
                }
            }
            seen.extend(shown(position));
        }
        needed
    }
}
