//! The messages of a file whose conversations follow each other: each message is there for a range of them.

use core::fmt;

use epitome_core::Usage;

use super::{Stages, TranscriptEntry, UsageEntry};

/// The times at which each message of a file is part of the active conversation. A stage is the conversation between
/// two changes, for example compactions. Stages are counted from 0, and the last one is active. A timeline takes some
/// twenty bytes for each message.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    /// The lives in the order of their beginnings.
    lives: Vec<Life>,
    now: u32,
    /// The times at which messages are hidden because another message has the same content. For each hiding, the stages
    /// at which it alternately begins and ends.
    hidings: Vec<Vec<u32>>,
}

/// The range of stages of a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Life {
    /// The index of the message.
    pub(crate) entry: u32,
    /// The place among the other messages. A replacement has the place of the replaced message.
    pub(crate) slot: u32,
    /// The first stage with the message, and the first stage without it.
    from: u32,
    until: u32,
    /// The hiding that may hide it; [`NEVER`] if there is none.
    hiding: u32,
}

impl Life {
    /// Whether a hiding may hide it.
    pub(crate) const fn can_be_hidden(&self) -> bool {
        self.hiding != NEVER
    }
}

/// The end of a message that is still there, and the number of no hiding.
pub(crate) const NEVER: u32 = u32::MAX;

impl Timeline {
    /// The number of the active stage.
    pub(crate) const fn now(&self) -> u32 {
        self.now
    }

    /// Begins the next stage.
    pub(crate) const fn advance(&mut self) {
        self.now = self.now.saturating_add(1);
    }

    /// Adds a message from the current stage on, and returns the number of its life.
    pub(crate) fn begin(&mut self, entry: u32, slot: u32) -> usize {
        self.begin_hidden_by(entry, slot, NEVER)
    }

    /// Adds a message that is hidden while `hiding` is on, and returns the number of its life.
    pub(crate) fn begin_hidden_by(&mut self, entry: u32, slot: u32, hiding: u32) -> usize {
        self.lives.push(Life { entry, slot, from: self.now, until: NEVER, hiding });
        self.lives.len().saturating_sub(1)
    }

    /// Ends a message: the current stage does not have it.
    pub(crate) fn end(&mut self, life: usize) {
        if let Some(life) = self.lives.get_mut(life) {
            life.until = self.now;
        }
    }

    /// Creates a hiding, and returns its number.
    pub(crate) fn hiding(&mut self) -> u32 {
        self.hidings.push(Vec::new());
        u32::try_from(self.hidings.len().saturating_sub(1)).unwrap_or(NEVER)
    }

    /// Turns a hiding on or off.
    pub(crate) fn toggle(&mut self, hiding: u32) {
        if let Some(times) = self.hidings.get_mut(hiding as usize) {
            match times.last() == Some(&self.now) {
                // A hiding that begins and ends in the same stage has no effect.
                true => drop(times.pop()),
                false => times.push(self.now),
            }
        }
    }

    fn is_hidden(&self, life: &Life, stage: u32) -> bool {
        let times = self.hidings.get(life.hiding as usize);
        times.is_some_and(|times| times.partition_point(|time| *time <= stage) % 2 == 1)
    }

    /// Finishes the timeline, after the whole file was read.
    pub(crate) fn finish(mut self, entries: Vec<TranscriptEntry>, mut reports: Vec<Report>) -> Stored {
        self.lives.shrink_to_fit();
        reports.sort_by_key(|report| report.entry);
        Stored { latest: Latest::of(&self.lives), timeline: self, entries, reports }
    }

    /// The messages at a stage in order, including hidden ones.
    pub(crate) fn at(&self, stage: u32) -> Vec<Life> {
        let is_there = |life: &&Life| life.from <= stage && stage < life.until;
        let mut lives: Vec<_> = self.lives.iter().filter(is_there).copied().collect();
        lives.sort_by_key(|life| (life.slot, life.entry));
        lives
    }
}

/// A report on a response, by its last message, for the stages in a range.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Report {
    pub(crate) entry: u32,
    pub(crate) from: u32,
    pub(crate) until: u32,
    pub(crate) usage: Usage,
}

/// A file whose conversations follow each other.
#[derive(Debug)]
pub(crate) struct Stored {
    timeline: Timeline,
    latest: Latest,
    entries: Vec<TranscriptEntry>,
    reports: Vec<Report>,
}

impl Stages for Stored {
    fn is_by_place(&self) -> bool {
        true
    }

    fn entries(&self) -> &[TranscriptEntry] {
        &self.entries
    }

    fn places(&self, stage: u32) -> Vec<u32> {
        let mut found = Vec::new();
        let begun = self.timeline.lives.partition_point(|life| life.from <= stage);
        self.latest.for_each_after(stage, begun, &mut |at| found.extend(self.timeline.lives.get(at)));
        found.retain(|life| !self.timeline.is_hidden(life, stage));
        found.sort_by_key(|life| (life.slot, life.entry));
        found.into_iter().map(|life| life.entry).collect()
    }

    fn reports(&self, stage: u32, places: &[u32]) -> Vec<UsageEntry> {
        let of = |(at, entry): (usize, &u32)| {
            let first = self.reports.partition_point(|report| report.entry < *entry);
            let own = self.reports.get(first..).unwrap_or_default().iter();
            let own = own.take_while(|report| report.entry == *entry);
            let own = own.filter(|report| report.from <= stage && stage < report.until);
            own.map(move |report| UsageEntry::new(at, report.usage)).collect::<Vec<_>>()
        };
        places.iter().enumerate().flat_map(of).collect()
    }

    fn holders(&self) -> Vec<u32> {
        let mut counts = vec![0_u32; self.entries.len()];
        for life in &self.timeline.lives {
            let until = life.until.min(self.timeline.now.saturating_add(1));
            if let Some(count) = counts.get_mut(life.entry as usize) {
                *count = count.saturating_add(until.saturating_sub(life.from));
            }
        }
        counts
    }
}

/// The latest end in each section of a list of lives, as a binary tree in an array. It finds the messages of a stage
/// without a scan of all lives.
struct Latest {
    ends: Vec<u32>,
    /// Number of its leaves, a power of two.
    leaves: usize,
}

impl Latest {
    fn of(lives: &[Life]) -> Self {
        let leaves = lives.len().next_power_of_two();
        let mut ends = vec![0; leaves.saturating_mul(2)];
        for (end, life) in ends.iter_mut().skip(leaves).zip(lives) {
            *end = life.until;
        }
        for at in (1..leaves).rev() {
            let child = |at: usize| ends.get(at).copied().unwrap_or_default();
            let latest = child(at.saturating_mul(2)).max(child(at.saturating_mul(2).saturating_add(1)));
            if let Some(end) = ends.get_mut(at) {
                *end = latest;
            }
        }
        Self { ends, leaves }
    }

    /// Visits the first `count` lives that end after a stage.
    fn for_each_after(&self, stage: u32, count: usize, visit: &mut impl FnMut(usize)) {
        // A node of the tree, the first life below it, and the number of lives below it.
        let mut open = vec![(1_usize, 0_usize, self.leaves)];
        while let Some((node, first, width)) = open.pop() {
            if first >= count || self.ends.get(node).is_none_or(|end| *end <= stage) {
                continue;
            }
            if width <= 1 {
                visit(first);
                continue;
            }
            let (half, left) = (width / 2, node.saturating_mul(2));
            open.push((left.saturating_add(1), first.saturating_add(half), half));
            open.push((left, first, half));
        }
    }
}

impl fmt::Debug for Latest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Latest").field("leaves", &self.leaves).finish_non_exhaustive()
    }
}
