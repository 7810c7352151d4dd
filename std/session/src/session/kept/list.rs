//! The list of messages for Agent Framework.
//!
//! In Agent Framework a list holds the log and its stand-ins. A reader that leaves out the messages marked as excluded
//! sends the rest, in order. Therefore hidden messages are marked, and a summary is a message of the list. A message
//! that is shown in changed form or at another place (a late answer) is marked too, and a copy of it stands in the
//! list. Copies are made of whole groups: if a part of a call is not marked, Agent Framework shows all of it.

use core::iter::Enumerate;
use std::collections::BTreeSet;
use std::vec::IntoIter;

use epitome_core::Seq;
use serde_json::{Map, Value, json};

use crate::history::inner::Snapshot;
use crate::history::{Entry, Live};
use crate::message::Message;
use crate::wire::agent_framework::write_messages;

/// The key of the mark, and of the reason beside it.
const EXCLUDED: &str = "_excluded";
const REASON: &str = "_exclude_reason";
/// The reason of the marks that are written here.
const OURS: &str = "epitome";

/// The list, and the values of it that stand for other messages.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) values: Vec<Value>,
    /// The positions of these values, and the numbers of the messages that they show. A summary has the lowest number
    /// that it covers.
    pub(super) stand_ins: Vec<(usize, Seq)>,
}

/// Makes the list from the `written` values of the log, each with its number of messages. The values that are not
/// marked are the messages of `live`, in their order.
pub(super) fn listed(written: Vec<(Value, usize)>, snapshot: &Snapshot, live: &[Live]) -> Listed {
    let in_order = live.is_sorted_by_key(|each| each.key);
    if snapshot.records.is_empty() && in_order {
        return Listed {
            values: written.into_iter().map(|(value, _)| value).collect(),
            stand_ins: Vec::new(),
        };
    }
    let log = Log::of(&snapshot.entries, &written);
    let mut items = items(live, &snapshot.entries);
    copy_what_moved(&mut items);
    copy_whole(&mut items, &log);
    let copied = items.iter().filter(|item| item.copied);
    let copies: Vec<Message> = copied.map(|item| plain(item.message)).collect();
    let taken_back = snapshot.records.iter().flat_map(|record| &record.hides);
    let is_taken_back = |seq: u64| taken_back.clone().any(|range| range.contains(Seq(seq)));
    let values = written.into_iter().map(|(value, _)| value).collect();
    merged(values, write_messages(&copies), &items, &log, is_taken_back)
}

/// A message to be shown.
struct Item<'a> {
    key: u64,
    /// The first message of its group.
    anchor: u64,
    message: &'a Message,
    is_summary: bool,
    /// Whether it is shown by a copy.
    copied: bool,
}

/// Visible messages. A summary that has no form in Agent Framework is left out: the messages that it covers are shown
/// instead.
fn items<'a>(live: &'a [Live], entries: &'a [Entry]) -> Vec<Item<'a>> {
    let mut items = Vec::with_capacity(live.len());
    for each in live {
        let message = &each.entry.message;
        let (key, anchor) = (each.key.0, each.entry.anchor.0);
        if each.covers.is_empty() {
            items.push(Item { key, anchor, message, is_summary: false, copied: !each.stand_ins.is_empty() });
        } else if is_sayable(message) {
            items.push(Item { key, anchor, message, is_summary: true, copied: true });
        } else {
            let seqs = each.covers.iter().flat_map(|range| range.first.0..=range.last.0);
            items.extend(seqs.filter_map(|key| {
                let entry = entries.get(usize::try_from(key).ok()?).filter(|entry| !entry.orphan)?;
                let (anchor, message) = (entry.anchor.0, &entry.message);
                Some(Item { key, anchor, message, is_summary: false, copied: false })
            }));
        }
    }
    items
}

fn is_sayable(message: &Message) -> bool {
    let written = write_messages(&[plain(message)]);
    written.iter().any(|value| value["contents"].as_array().is_some_and(|contents| !contents.is_empty()))
}

/// Marks messages to be copied that are shown before an earlier message.
fn copy_what_moved(items: &mut [Item<'_>]) {
    let mut earliest = u64::MAX;
    for item in items.iter_mut().rev().filter(|item| !item.is_summary) {
        item.copied |= item.key > earliest;
        earliest = earliest.min(item.key);
    }
}

/// Marks to be copied: all messages of a group with a copied message, and of a value that is not shown whole.
fn copy_whole(items: &mut [Item<'_>], log: &Log) {
    loop {
        let messages = || items.iter().filter(|item| !item.is_summary);
        let groups: BTreeSet<u64> = messages().filter(|item| item.copied).map(|item| item.anchor).collect();
        let mut shown = vec![0_usize; log.counts.len()];
        for item in messages().filter(|item| !item.copied) {
            if let Some(shown) = shown.get_mut(log.value(item.key)) {
                *shown = shown.saturating_add(1);
            }
        }
        let mut changed = false;
        for item in items.iter_mut().filter(|item| !item.is_summary && !item.copied) {
            let at = log.value(item.key);
            item.copied = groups.contains(&item.anchor) || shown.get(at) != log.counts.get(at);
            changed |= item.copied;
        }
        if !changed {
            return;
        }
    }
}

/// The message with its role, parts, attribution and name only: a copy is not the message that was read.
fn plain(message: &Message) -> Message {
    let copy = Message::new(message.role(), message.parts().to_vec());
    let copy = copy.with_attribution(message.attribution().clone());
    message.name().map_or_else(|| copy.clone(), |name| copy.clone().with_name(name))
}

/// The assignment of the messages of the log to the values of the list.
struct Log {
    /// Value of each message.
    values: Vec<usize>,
    /// Number of messages of each value, and the group of the first.
    counts: Vec<usize>,
    anchors: Vec<u64>,
    /// Whether each value is an orphan.
    orphans: Vec<bool>,
}

impl Log {
    fn of(entries: &[Entry], written: &[(Value, usize)]) -> Self {
        let counts: Vec<usize> = written.iter().map(|(_, count)| *count).collect();
        let values = counts.iter().enumerate().flat_map(|(at, count)| core::iter::repeat_n(at, *count));
        let values: Vec<usize> = values.collect();
        let (mut anchors, mut orphans) = (vec![0; counts.len()], vec![true; counts.len()]);
        for (at, entry) in values.iter().zip(entries).rev() {
            if let (Some(anchor), Some(orphan)) = (anchors.get_mut(*at), orphans.get_mut(*at)) {
                (*anchor, *orphan) = (entry.anchor.0, *orphan && entry.orphan);
            }
        }
        Self { values, counts, anchors, orphans }
    }

    fn value(&self, seq: u64) -> usize {
        let at = usize::try_from(seq).ok().and_then(|seq| self.values.get(seq));
        at.copied().unwrap_or(self.counts.len())
    }

    /// End of the run of values that begins here and is of the same group.
    fn end_of_group(&self, at: usize) -> usize {
        let anchor = self.anchors.get(at);
        let others = self.anchors.get(at..).unwrap_or_default();
        at.saturating_add(others.iter().take_while(|other| Some(*other) == anchor).count())
    }
}

/// Inserts `copies` between the `values` of the log, and marks the values that are not shown.
fn merged(
    values: Vec<Value>,
    copies: Vec<Value>,
    items: &[Item<'_>],
    log: &Log,
    is_taken_back: impl Fn(u64) -> bool,
) -> Listed {
    let mut merging = Merging {
        values: values.into_iter().enumerate(),
        next: 0,
        log,
        listed: Listed { values: Vec::with_capacity(log.counts.len()), stand_ins: Vec::new() },
    };
    let mut copies = copies.into_iter();
    for (item, bound) in items.iter().zip(bounds(items, log)) {
        let at = log.value(item.key);
        if item.copied {
            let end = if item.is_summary { at } else { log.end_of_group(at) };
            merging.hide_to(end.min(bound));
            merging.listed.stand_ins.push((merging.listed.values.len(), Seq(item.key)));
            merging.listed.values.extend(copies.next());
        } else if at >= merging.next {
            merging.hide_to(at);
            merging.show(is_taken_back(item.key));
        }
    }
    merging.hide_to(usize::MAX);
    merging.listed
}

/// The list so far, and the values that are still to be listed.
struct Merging<'a> {
    values: Enumerate<IntoIter<Value>>,
    /// The next of the log's values.
    next: usize,
    log: &'a Log,
    listed: Listed,
}

impl Merging<'_> {
    /// Lists the values up to `end`, and marks them as hidden. An orphan is not marked: no compaction has hidden it.
    fn hide_to(&mut self, end: usize) {
        while self.next < end {
            let Some((at, mut value)) = self.values.next() else { return };
            if !self.log.orphans.get(at).copied().unwrap_or_default() {
                exclude(&mut value);
            }
            self.listed.values.push(value);
            self.next = self.next.saturating_add(1);
        }
    }

    /// Lists the next value without our mark, and without the mark of Agent Framework if the hiding by it was taken
    /// back here.
    fn show(&mut self, taken_back: bool) {
        let Some((_, mut value)) = self.values.next() else { return };
        unmark(&mut value);
        if taken_back
            && is_excluded(&value)
            && let Some(mark) = value.get_mut("additional_properties").and_then(|it| it.get_mut(EXCLUDED))
        {
            *mark = Value::from(false);
        }
        self.listed.values.push(value);
        self.next = self.next.saturating_add(1);
    }
}

/// For each item, the value that a copy of it has to precede: the next value that is shown itself.
fn bounds(items: &[Item<'_>], log: &Log) -> Vec<usize> {
    let mut bound = usize::MAX;
    let mut bounds: Vec<usize> = items
        .iter()
        .rev()
        .map(|item| {
            if !item.copied {
                bound = log.value(item.key);
            }
            bound
        })
        .collect();
    bounds.reverse();
    bounds
}

fn properties(value: &Value) -> Option<&Map<String, Value>> {
    value.get("additional_properties").and_then(Value::as_object)
}

/// Marks a value as excluded, unless it is marked already.
fn exclude(value: &mut Value) {
    if is_excluded(value) {
        return;
    }
    let Value::Object(message) = value else { return };
    let place = message.entry("additional_properties").or_insert_with(|| json!({}));
    if let Value::Object(properties) = place {
        properties.insert(EXCLUDED.to_owned(), Value::from(true));
        properties.insert(REASON.to_owned(), Value::from(OURS));
    }
}

/// Whether a value is marked as excluded, by any program.
pub(in crate::session) fn is_excluded(value: &Value) -> bool {
    properties(value).and_then(|it| it.get(EXCLUDED)).and_then(Value::as_bool).unwrap_or_default()
}

fn has_our_mark(value: &Value) -> bool {
    properties(value).and_then(|it| it.get(REASON)).and_then(Value::as_str) == Some(OURS)
}

/// Removes our mark: it is no part of the message.
pub(super) fn unmark(value: &mut Value) {
    if !has_our_mark(value) {
        return;
    }
    if let Some(Value::Object(properties)) = value.get_mut("additional_properties") {
        properties.remove(EXCLUDED);
        properties.remove(REASON);
    }
}
