//! The knowledge of texts that a strategy needs, in numbers.

use core::hash::{BuildHasher as _, BuildHasherDefault};
use core::ops::Range;
use std::collections::{BTreeMap, HashMap};
use std::hash::DefaultHasher;
use std::string::String;
use std::vec::Vec;

use epitome_core::IndexedPart;
use epitome_core::message::{PartView, Parts};
use epitome_std::search::ConversationIndex;
use foldhash::fast::RandomState;

/// The knowledge of texts that the stages of a [`StrategySpec`](super::StrategySpec) need, because a strategy sees no text: made
/// by [`StrategySpec::texts`](super::StrategySpec::texts), then shown all messages of an index in their order.
///
/// For [`Supersede`](crate::Supersede): the tool and the arguments of the call of each result. Two results are about the same thing if both
/// are equal. For [`Salience`](crate::Salience): a [`ConversationIndex`] of the messages, with their texts and results of tools.
#[derive(Debug, Clone, Default)]
pub struct SpecTexts {
    things: Option<Things>,
    search: Option<Search>,
}

/// Subject of each result.
#[derive(Debug, Clone, Default)]
struct Things {
    /// The latest call with an id.
    calls: BTreeMap<String, u64>,
    /// By the position of the message and the part's place in it.
    results: BTreeMap<(u32, u32), u64>,
}

#[derive(Debug, Clone, Default)]
struct Search {
    index: ConversationIndex,
    hasher: RandomState,
    /// By the hash of a text, the newest message that has it.
    newest: HashMap<u64, u32, RandomState>,
    /// By position, the hash of the text.
    hashes: Vec<u64>,
    /// The place of each text and of each result of a tool, in their order.
    places: Vec<Place>,
    /// Room for the text of a message.
    text: String,
    /// Room for where these stand in it.
    ranges: Vec<Range<usize>>,
}

/// The place of a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) position: u32,
    pub(super) ordinal: u32,
    /// Whether it is the result of a tool.
    pub(super) is_result: bool,
}

impl SpecTexts {
    pub(super) fn new(things: bool, search: bool) -> Self {
        Self { things: things.then(Things::default), search: search.then(Search::default) }
    }

    /// Looks through the message at `position`.
    pub fn look_through<M: Parts + ?Sized>(&mut self, position: u32, message: &M) {
        if let Some(things) = &mut self.things {
            things.look_through(position, message);
        }
        if let Some(search) = &mut self.search {
            search.look_through(position, message);
        }
    }

    /// Subject of a result.
    pub(super) fn thing(&self, part: &IndexedPart<'_>) -> Option<u64> {
        self.things.as_ref()?.results.get(&(part.position(), part.ordinal())).copied()
    }

    /// By position, how much each message says, in units of [`ConversationIndex::weights`]; 0 if a newer one says the same. Empty where no
    /// search was asked for.
    pub(super) fn weights(&self) -> Vec<u64> {
        let Some(search) = &self.search else { return Vec::new() };
        let mut weights = search.index.weights();
        for ((weight, hash), position) in weights.iter_mut().zip(&search.hashes).zip(0..) {
            if search.newest.get(hash) != Some(&position) {
                *weight = 0;
            }
        }
        weights
    }

    /// The places of texts of which a sentence is updated, each with that of the newest text that does so and may.
    pub(super) fn updated(&self, may_update: impl Fn(Place) -> bool) -> Vec<(Place, Place)> {
        let Some(search) = &self.search else { return Vec::new() };
        let place = |text: usize| search.places.get(text).copied();
        let updates = search.index.updates(|text| place(text).is_some_and(&may_update));
        let places = updates.into_iter().map(|update| Some((place(update.older)?, place(update.newer)?)));
        places.flatten().collect()
    }

    /// By position, how near each message is to the one at `position`; empty where no search was asked for.
    pub(super) fn near(&self, position: u32) -> Vec<u64> {
        let scores = self.search.as_ref().map(|search| search.index.scores_like(position as usize));
        scores.unwrap_or_default()
    }
}

/// Only compared within one pass, so that it need not be the same elsewhere.
fn hash(of: impl core::hash::Hash) -> u64 {
    BuildHasherDefault::<DefaultHasher>::new().hash_one(of)
}

impl Things {
    fn look_through<M: Parts + ?Sized>(&mut self, position: u32, message: &M) {
        let mut ordinal = 0_u32;
        message.for_each_part(&mut |part| {
            match part {
                PartView::ToolCall(call) => {
                    self.calls.insert(call.id.into(), hash((call.name, call.arguments)));
                }
                PartView::ToolResult(result) => {
                    if let Some(thing) = self.calls.get(result.call_id) {
                        self.results.insert((position, ordinal), *thing);
                    }
                }
                _ => {}
            }
            ordinal = ordinal.saturating_add(1);
        });
    }
}

impl Search {
    fn look_through<M: Parts + ?Sized>(&mut self, position: u32, message: &M) {
        // One that was passed over says nothing.
        self.text.clear();
        self.ranges.clear();
        while self.hashes.len() < position as usize {
            self.add();
        }
        let mut ordinal = 0_u32;
        message.for_each_part(&mut |part| {
            let start = self.text.len();
            let is_result = matches!(part, PartView::ToolResult(_));
            let may_update = is_result || matches!(part, PartView::Text(_));
            write(part, &mut self.text);
            if may_update {
                self.ranges.push(start..self.text.len());
                self.places.push(Place { position, ordinal, is_result });
            }
            ordinal = ordinal.saturating_add(1);
        });
        self.add();
    }

    /// Adds the message whose text was written.
    fn add(&mut self) {
        let (hash, position) =
            (self.hasher.hash_one(&self.text), u32::try_from(self.hashes.len()).unwrap_or(u32::MAX));
        self.index.add(&self.text, &self.ranges);
        self.hashes.push(hash);
        self.newest.insert(hash, position);
    }
}

/// All that a part says to its reader, a line for each text: texts, names and arguments of calls, results.
fn write(part: PartView<'_>, text: &mut String) {
    let mut line = |own: &str| {
        text.push_str(own);
        text.push('\n');
    };
    match part {
        PartView::Text(own) => line(own),
        PartView::ToolCall(call) => {
            line(call.name);
            line(call.arguments);
        }
        PartView::ToolResult(result) => result.content.for_each_part(&mut |part| write(part, text)),
        PartView::Compaction(own) => line(own.text),
        _ => {}
    }
}
