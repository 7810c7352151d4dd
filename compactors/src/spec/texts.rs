//! Facts about the texts of messages, as numbers for a strategy.

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

/// Facts about the texts of messages that the stages of a [`StrategySpec`](super::StrategySpec) need, because a
/// strategy sees no text. [`StrategySpec::texts`](super::StrategySpec::texts) makes an empty value; add all
/// messages of an index to it in their order.
///
/// For [`Supersede`](crate::Supersede): the tool and the arguments of the call of each result. Two results have the
/// same subject if both are equal. For [`Salience`](crate::Salience): a [`ConversationIndex`] of the messages, with
/// their texts and tool results.
#[derive(Debug, Clone, Default)]
pub struct SpecTexts {
    things: Option<Things>,
    search: Option<Search>,
}

/// The subject of each result.
#[derive(Debug, Clone, Default)]
struct Things {
    /// Subjects of calls, by call id: the latest call with each id.
    calls: BTreeMap<String, u64>,
    /// Subjects of results, by the position of the message and the ordinal of the part.
    results: BTreeMap<(u32, u32), u64>,
}

#[derive(Debug, Clone, Default)]
struct Search {
    index: ConversationIndex,
    hasher: RandomState,
    /// The newest message with each text, by the hash of the text.
    newest: HashMap<u64, u32, RandomState>,
    /// The hash of each message's text, by position.
    hashes: Vec<u64>,
    /// The place of each text and of each result of a tool, in their order.
    places: Vec<Place>,
    /// Buffer for the text of a message.
    text: String,
    /// Buffer for the ranges of its texts and results.
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

    /// Adds the message at `position`.
    pub fn look_through<M: Parts + ?Sized>(&mut self, position: u32, message: &M) {
        if let Some(things) = &mut self.things {
            things.look_through(position, message);
        }
        if let Some(search) = &mut self.search {
            search.look_through(position, message);
        }
    }

    /// The subject of a result.
    pub(super) fn thing(&self, part: &IndexedPart<'_>) -> Option<u64> {
        self.things.as_ref()?.results.get(&(part.position(), part.ordinal())).copied()
    }

    /// The weight of each message, by position, in units of [`ConversationIndex::weights`]; 0 if a newer message
    /// has the same text. Empty if no stage uses the worth of texts.
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

    /// Pairs of places: a text with a sentence that is updated, and the newest text that updates it and for which
    /// `may_update` holds.
    pub(super) fn updated(&self, may_update: impl Fn(Place) -> bool) -> Vec<(Place, Place)> {
        let Some(search) = &self.search else { return Vec::new() };
        let place = |text: usize| search.places.get(text).copied();
        let updates = search.index.updates(|text| place(text).is_some_and(&may_update));
        let places = updates.into_iter().map(|update| Some((place(update.older)?, place(update.newer)?)));
        places.flatten().collect()
    }

    /// The nearness of each message to the one at `position`, by position. Empty if no stage uses the worth of
    /// texts.
    pub(super) fn near(&self, position: u32) -> Vec<u64> {
        let scores = self.search.as_ref().map(|search| search.index.scores_like(position as usize));
        scores.unwrap_or_default()
    }
}

/// A hash for comparisons within one pass. It may differ between platforms.
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
        // A position that was skipped has an empty text.
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

    /// Adds the message whose text is in the buffer.
    fn add(&mut self) {
        let (hash, position) =
            (self.hasher.hash_one(&self.text), u32::try_from(self.hashes.len()).unwrap_or(u32::MAX));
        self.index.add(&self.text, &self.ranges);
        self.hashes.push(hash);
        self.newest.insert(hash, position);
    }
}

/// Writes the texts of a part, one line each: texts, names and arguments of calls, results.
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
