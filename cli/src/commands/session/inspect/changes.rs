//! The difference of two revisions of a session.

use std::collections::BTreeMap;

use epitome::core::Revision;
use epitome::core::attribution::SeqRange;
use epitome::history::{Committed, Summary};
use serde::Serialize;

/// The difference of two revisions. Its fields are JSON; numbers are those of messages in the log.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Difference {
    pub(super) from: u64,
    pub(super) to: u64,
    /// Ranges of messages that are hidden only at the second revision: the first and the last number of each. A message
    /// that was appended later to a hidden group is hidden with it.
    pub(super) hidden: Vec<(u64, u64)>,
    /// All messages that are hidden at the second revision.
    pub(super) hidden_at_end: Vec<(u64, u64)>,
    /// The messages that are hidden only at the first revision.
    pub(super) shown: Vec<(u64, u64)>,
    /// The messages that are shortened, or shortened again, at the second revision.
    pub(super) shortened: Vec<u64>,
    /// The messages that are whole again at the second revision.
    pub(super) whole: Vec<u64>,
    pub(super) summaries: Vec<ChangedSummary>,
}

/// A summary that is shown at only one of two revisions.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct ChangedSummary {
    /// The number of the first message that it replaces.
    pub(super) key: u64,
    /// The revision that made it.
    pub(super) revision: u64,
    /// Whether the second revision shows it.
    pub(super) is_new: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) text: String,
}

/// The hidden messages, shortened messages and summaries at a revision.
#[derive(Debug, Default)]
struct Projection {
    /// Ascending, without overlap.
    hidden: Vec<SeqRange>,
    /// For each message, the latest revision that shortened it.
    shortened: BTreeMap<u64, Revision>,
    /// For each key, the revision that made the summary.
    summaries: BTreeMap<u64, Revision>,
}

impl Difference {
    /// The difference between `from` and `to`. `records` are all records of the session in order.
    pub(super) fn of(records: &[Committed], from: u64, to: u64) -> Self {
        let [before, after] = [from, to].map(|revision| Projection::at(records, Revision(revision)));
        let changed = |one: &Projection, other: &Projection, is_new| {
            let gone = one.summaries.iter().filter(|(key, made)| other.summaries.get(key) != Some(made));
            let changed = gone.map(|(key, made)| ChangedSummary {
                key: *key,
                revision: made.0,
                is_new,
                text: String::new(),
            });
            changed.collect::<Vec<_>>()
        };
        let mut summaries = changed(&before, &after, false);
        summaries.extend(changed(&after, &before, true));
        summaries.sort_by_key(|summary| (summary.key, summary.is_new));
        Self {
            from,
            to,
            hidden: without(&after.hidden, &before.hidden),
            hidden_at_end: without(&after.hidden, &[]),
            shown: without(&before.hidden, &after.hidden),
            shortened: apart(&after.shortened, |seq, made| before.shortened.get(seq) != Some(made)),
            whole: apart(&before.shortened, |seq, _| {
                !after.shortened.contains_key(seq) && !after.hides(*seq)
            }),
            summaries,
        }
    }
}

/// The summary that the record of `revision` shows at `key`.
pub(super) fn summary(records: &[Committed], revision: u64, key: u64) -> Option<&Summary> {
    let at = records.binary_search_by_key(&revision, |it| it.revision.0).ok()?;
    records.get(at)?.record.summaries.iter().find(|summary| summary.key.0 == key)
}

impl Projection {
    fn at(records: &[Committed], revision: Revision) -> Self {
        let mut at = Self::default();
        let holds = |it: &&Committed| it.revision <= revision && it.undone_by.is_none_or(|by| by > revision);
        for Committed { revision, record, .. } in records.iter().filter(holds) {
            at.hidden.extend(&record.hides);
            for range in &record.hides {
                remove(&mut at.shortened, *range);
                remove(&mut at.summaries, *range);
            }
            at.shortened.extend(record.edits.iter().map(|edit| (edit.seq.0, *revision)));
            at.summaries.extend(record.summaries.iter().map(|summary| (summary.key.0, *revision)));
        }
        at.hidden.sort_unstable();
        at.hidden.dedup_by(|next, kept| {
            let meets = next.first <= kept.last.next();
            if meets {
                kept.last = kept.last.max(next.last);
            }
            meets
        });
        at
    }

    fn hides(&self, seq: u64) -> bool {
        let at = self.hidden.partition_point(|range| range.last.0 < seq);
        self.hidden.get(at).is_some_and(|range| range.first.0 <= seq)
    }
}

fn remove(map: &mut BTreeMap<u64, Revision>, range: SeqRange) {
    let gone: Vec<u64> = map.range(range.first.0..=range.last.0).map(|(key, _)| *key).collect();
    for key in gone {
        map.remove(&key);
    }
}

fn apart(map: &BTreeMap<u64, Revision>, wanted: impl Fn(&u64, &Revision) -> bool) -> Vec<u64> {
    map.iter().filter(|(seq, made)| wanted(seq, made)).map(|(seq, _)| *seq).collect()
}

/// The parts of `ranges` outside of `others`. Both are ascending and do not overlap.
fn without(ranges: &[SeqRange], others: &[SeqRange]) -> Vec<(u64, u64)> {
    let (mut left, mut rest) = (Vec::new(), others);
    for range in ranges {
        let (mut first, last) = (range.first.0, range.last.0);
        while let Some((other, more)) = rest.split_first().filter(|(other, _)| other.first.0 <= last) {
            if other.last.0 >= first {
                if other.first.0 > first {
                    left.push((first, other.first.0 - 1));
                }
                first = other.last.0.saturating_add(1);
            }
            // The other range may reach into the next one.
            if other.last.0 > last {
                break;
            }
            rest = more;
        }
        if first <= last {
            left.push((first, last));
        }
    }
    left
}

#[cfg(test)]
mod tests;
