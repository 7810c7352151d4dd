//! Runs of the sequence numbers of a session's visible messages.
//!
//! The index of visible messages has entries of hidden ones until the server vacuums it, and a scan reads them all.
//! After many compactions that is most of the cost of a load. The session's row therefore has the positions of visible
//! messages, in a few runs of numbers. A load searches the index only within these runs.

use core::cmp::Reverse;
use std::collections::BTreeSet;

use epitome_core::{Head, Seq};

use epitome_history::rows::int;

/// Runs of sequence numbers, ascending and disjoint. Every visible message is in a run; a run may also contain hidden
/// ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Runs {
    first: Vec<i64>,
    last: Vec<i64>,
}

/// The largest gap within a run. A scan over this many numbers, which are in one page of the index, costs less than a
/// search for the next run.
const GAP_MAX: i64 = 64;

/// Maximum number of runs. It keeps a session's row small: each run takes 16 bytes.
const RUNS_MAX: usize = 32;

impl Runs {
    /// One run of all numbers, for an unknown position of visible messages.
    pub(super) fn all() -> Self {
        Self { first: vec![0], last: vec![i64::MAX] }
    }

    /// The runs of a row; all numbers if the row has none.
    pub(super) fn stored(first: Option<Vec<i64>>, last: Option<Vec<i64>>) -> Self {
        match (first, last) {
            (Some(first), Some(last)) if first.len() == last.len() => Self { first, last },
            _ => Self::all(),
        }
    }

    /// A few runs with the messages `visible`, which are ascending, and with all messages from `head` on.
    pub(super) fn around(visible: impl IntoIterator<Item = Seq>, head: Head) -> Self {
        let visible = visible.into_iter().map(|seq| (int(seq.0), int(seq.0)));
        let runs = Self::joined(visible.chain([(int(head.0), i64::MAX)]), GAP_MAX);
        // The widest gaps stay between the runs.
        let mut gaps: Vec<(i64, usize)> = runs.gaps().zip(1..).collect();
        gaps.sort_unstable_by_key(|(gap, _)| Reverse(*gap));
        gaps.truncate(RUNS_MAX.saturating_sub(1));
        let begins: BTreeSet<usize> = gaps.into_iter().map(|(_, at)| at).chain([0]).collect();
        let mut few = Self { first: Vec::new(), last: Vec::new() };
        for (at, (first, last)) in runs.pairs().enumerate() {
            match few.last.last_mut() {
                Some(before) if !begins.contains(&at) => *before = last,
                _ => {
                    few.first.push(first);
                    few.last.push(last);
                }
            }
        }
        few
    }

    /// The parts of the runs from `from` on.
    pub(super) fn starting(&self, from: Seq) -> Self {
        let from = int(from.0);
        let kept = self.pairs().filter(|(_, last)| *last >= from);
        Self::joined(kept.map(|(first, last)| (first.max(from), last)), 0)
    }

    /// The last `count` numbers of the runs before `end`.
    pub(super) fn newest(&self, end: i64, mut count: i64) -> Self {
        let mut pairs = Vec::new();
        for (first, last) in self.pairs().collect::<Vec<_>>().into_iter().rev() {
            let last = last.min(end.saturating_sub(1));
            if last < first {
                continue;
            }
            if count <= 0 {
                break;
            }
            let first = first.max(last.saturating_sub(count.saturating_sub(1)));
            count = count.saturating_sub(last.saturating_sub(first).saturating_add(1));
            pairs.push((first, last));
        }
        Self::joined(pairs.into_iter().rev(), 0)
    }

    /// The runs as two database columns.
    pub(super) const fn columns(&self) -> (&Vec<i64>, &Vec<i64>) {
        (&self.first, &self.last)
    }

    /// Joins ascending runs with at most `gap` numbers between them.
    fn joined(pairs: impl Iterator<Item = (i64, i64)>, gap: i64) -> Self {
        let (mut firsts, mut lasts): (Vec<i64>, Vec<i64>) = (Vec::new(), Vec::new());
        for (first, last) in pairs {
            match lasts.last_mut() {
                Some(before) if first.saturating_sub(*before).saturating_sub(1) <= gap => {
                    *before = last.max(*before);
                }
                _ => {
                    firsts.push(first);
                    lasts.push(last);
                }
            }
        }
        Self { first: firsts, last: lasts }
    }

    /// The first and the last number of each run.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (i64, i64)> {
        self.first.iter().copied().zip(self.last.iter().copied())
    }

    /// The number of numbers between each run and the next.
    fn gaps(&self) -> impl Iterator<Item = i64> {
        let next = self.first.iter().skip(1);
        self.last.iter().zip(next).map(|(last, next)| next.saturating_sub(*last).saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use proptest::test_runner::{Config, TestRunner};

    use super::*;

    fn holds(runs: &Runs, seq: u64) -> bool {
        runs.pairs().any(|(first, last)| (first..=last).contains(&int(seq)))
    }

    /// Runs of exactly these numbers, which are ascending.
    fn exactly(seqs: impl IntoIterator<Item = Seq>) -> Runs {
        Runs::joined(seqs.into_iter().map(|seq| (int(seq.0), int(seq.0))), 0)
    }

    fn seqs(numbers: &BTreeSet<u64>) -> Vec<Seq> {
        numbers.iter().copied().map(Seq).collect()
    }

    /// Compares the runs with a check of each number. The numbers are partly close together and partly far apart.
    #[test]
    fn runs_hold_what_is_visible_and_little_else() {
        let numbers = || proptest::collection::btree_set(prop_oneof![0..300_u64, 0..9_000_u64], 0..150);
        let mut runner =
            TestRunner::new(Config { cases: 500, failure_persistence: None, ..Config::default() });
        let (crowded, apart) = (Cell::new(0), Cell::new(0));
        runner
            .run(&(numbers(), numbers(), 0..9_000_u64, 1..200_i64), |(visible, shown, from, count)| {
                let head = visible.last().map_or(7, |last| last + 9);
                let runs = Runs::around(seqs(&visible), Seq(head));
                let (first, last) = runs.columns();
                prop_assert!(first.len() <= RUNS_MAX && last.last() == Some(&i64::MAX));
                prop_assert!(visible.iter().chain([&head]).all(|seq| holds(&runs, *seq)));
                // The widest gaps are those between the runs.
                let between =
                    visible.iter().zip(visible.iter().skip(1)).map(|(one, next)| int(next - one - 1));
                let mut wide: Vec<i64> = between.filter(|gap| *gap > GAP_MAX).collect();
                wide.sort_unstable_by_key(|gap| Reverse(*gap));
                let counted = if wide.len() >= RUNS_MAX { &crowded } else { &apart };
                wide.truncate(RUNS_MAX - 1);
                let mut gaps: Vec<i64> = runs.gaps().collect();
                gaps.sort_unstable_by_key(|gap| Reverse(*gap));
                prop_assert_eq!(gaps, wide);
                counted.set(counted.get() + 1);

                let tail = runs.starting(Seq(from));
                let exact = exactly(seqs(&visible));
                let newest = exact.newest(int(from), count);
                let expected: BTreeSet<u64> =
                    visible.range(..from).rev().take(usize::try_from(count).unwrap()).copied().collect();
                for seq in (0..9_100).step_by(97).chain(visible.iter().copied()).chain(shown.iter().copied())
                {
                    prop_assert_eq!(holds(&tail, seq), holds(&runs, seq) && seq >= from);
                    prop_assert_eq!(holds(&exact, seq), visible.contains(&seq));
                    prop_assert_eq!(holds(&newest, seq), expected.contains(&seq));
                }
                for runs in [&runs, &tail, &exact, &newest] {
                    prop_assert!(
                        runs.pairs().all(|(first, last)| first <= last) && runs.gaps().all(|gap| gap > 0)
                    );
                }
                Ok(())
            })
            .unwrap();
        let (crowded, apart) = (crowded.get(), apart.get());
        println!("{crowded} with more gaps than runs may have, {apart} with fewer");
        assert!(crowded >= 50 && apart >= 50);
    }

    #[test]
    fn where_nothing_is_known_everything_is_looked_at() {
        for stored in [(None, None), (Some(vec![1]), None), (Some(vec![1]), Some(vec![2, 3]))] {
            assert_eq!(Runs::stored(stored.0, stored.1), Runs::all());
        }
        assert_eq!(Runs::stored(Some(vec![4]), Some(vec![9])), exactly((4..10).map(Seq)));
        assert!(exactly([]).newest(9, 9).columns().0.is_empty());
    }
}
