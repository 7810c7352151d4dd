//! A set of messages and summaries: the visible ones, or those that a record has hidden.

use core::fmt::Write;

use epitome_core::{Revision, Seq};
use epitome_history::StoreError;
use epitome_history::kernel::SummaryPlace;
use epitome_history::rules::corrupt;

/// A set of messages and summaries, with references to the stand-ins of the messages. Consecutive messages take one
/// entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Members {
    /// Ranges of messages, ascending and not adjacent; both ends are included.
    runs: Vec<(Seq, Seq)>,
    /// Stand-ins of shortened messages, ascending.
    pub(crate) edited: Vec<Shortened>,
    /// Sorted by key.
    pub(crate) summaries: Vec<SummaryPlace>,
}

/// Reference to the stand-ins of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shortened {
    pub(crate) seq: Seq,
    /// The revision of the item that stores the stand-ins.
    pub(crate) kept_by: Revision,
    /// The revision that created the stand-ins.
    pub(crate) by: Revision,
}

impl Members {
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.summaries.is_empty()
    }

    pub(crate) fn runs(&self) -> &[(Seq, Seq)] {
        &self.runs
    }

    pub(crate) fn seqs(&self) -> impl DoubleEndedIterator<Item = Seq> {
        self.runs.iter().flat_map(|(first, last)| first.0..=last.0).map(Seq)
    }

    /// The number of messages.
    pub(crate) fn len(&self) -> u64 {
        let len = |(first, last): &(Seq, Seq)| last.0.saturating_sub(first.0).saturating_add(1);
        self.runs.iter().map(len).fold(0, u64::saturating_add)
    }

    pub(crate) fn contains(&self, seq: Seq) -> bool {
        let at = self.runs.partition_point(|(_, last)| *last < seq);
        self.runs.get(at).is_some_and(|(first, _)| *first <= seq)
    }

    pub(crate) fn shortened(&self, seq: Seq) -> Option<Shortened> {
        let at = self.edited.binary_search_by_key(&seq, |edited| edited.seq).ok()?;
        self.edited.get(at).copied()
    }

    pub(crate) fn of_summaries(summaries: Vec<SummaryPlace>) -> Self {
        Self { summaries, ..Self::default() }
    }

    /// Adds messages, ascending, that are not shortened and not yet in the set.
    pub(crate) fn add(&mut self, seqs: impl IntoIterator<Item = Seq>) {
        let added: Vec<(Seq, Seq)> = seqs.into_iter().map(|seq| (seq, seq)).collect();
        self.join(&added);
    }

    /// Adds all members of `other`.
    pub(crate) fn merge(&mut self, other: Self) {
        self.join(&other.runs);
        self.edited.extend(other.edited);
        self.edited.sort_unstable_by_key(|edited| edited.seq);
        self.summaries.extend(other.summaries);
        self.summaries.sort_unstable_by_key(|place| (place.key, place.made));
    }

    fn join(&mut self, added: &[(Seq, Seq)]) {
        let mut all = core::mem::take(&mut self.runs);
        all.extend_from_slice(added);
        all.sort_unstable();
        for (first, last) in all {
            match self.runs.last_mut() {
                Some((_, end)) if end.next() >= first => *end = (*end).max(last),
                _ => self.runs.push((first, last)),
            }
        }
    }

    /// Removes these messages, ascending, and these summaries, and returns them as a set.
    pub(crate) fn take(&mut self, seqs: &[Seq], summaries: &[SummaryPlace]) -> Self {
        let mut taken = Self::default();
        taken.add(seqs.iter().copied());
        let mut left = Self::default();
        for (first, last) in core::mem::take(&mut self.runs) {
            let mut free = Some(first);
            let from = taken.runs.partition_point(|(_, end)| *end < first);
            for (begin, end) in taken.runs.iter().skip(from).take_while(|(begin, _)| *begin <= last) {
                if let Some(start) = free.filter(|start| start < begin) {
                    left.runs.push((start, Seq(begin.0.saturating_sub(1))));
                }
                free = Some(end.next()).filter(|next| *next <= last);
            }
            left.runs.extend(free.map(|start| (start, last)));
        }
        self.runs = left.runs;
        let is_taken = |edited: &Shortened| taken.contains(edited.seq);
        let edited = core::mem::take(&mut self.edited);
        (taken.edited, self.edited) = edited.into_iter().partition(is_taken);
        let places = core::mem::take(&mut self.summaries);
        (taken.summaries, self.summaries) = places.into_iter().partition(|place| summaries.contains(place));
        taken
    }

    /// Sets the stand-ins of a message of the set.
    pub(crate) fn shorten(&mut self, shortened: Shortened) {
        match self.edited.binary_search_by_key(&shortened.seq, |edited| edited.seq) {
            Ok(at) => self.edited.splice(at..=at, [shortened]).for_each(drop),
            Err(at) => self.edited.insert(at, shortened),
        }
    }

    /// Marks a message of the set as not shortened.
    pub(crate) fn show_whole(&mut self, seq: Seq) {
        if let Ok(at) = self.edited.binary_search_by_key(&seq, |edited| edited.seq) {
            self.edited.remove(at);
        }
    }

    /// The stored text: ranges, shortened messages and summaries, separated by semicolons, for example
    /// `0-3,7;2.5.5;0.3`.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let comma = |at: usize| if at == 0 { "" } else { "," };
        for (at, (first, last)) in self.runs.iter().enumerate() {
            // Writing into a text does not fail.
            let _ = match first == last {
                true => write!(text, "{}{first}", comma(at)),
                false => write!(text, "{}{first}-{last}", comma(at)),
            };
        }
        text.push(';');
        for (at, Shortened { seq, kept_by, by }) in self.edited.iter().enumerate() {
            let _ = write!(text, "{}{seq}.{kept_by}.{by}", comma(at));
        }
        text.push(';');
        for (at, SummaryPlace { made, key }) in self.summaries.iter().enumerate() {
            let _ = write!(text, "{}{key}.{made}", comma(at));
        }
        text
    }

    /// Reads the set from its stored text.
    pub(crate) fn parse(text: &str) -> Result<Self, StoreError> {
        read(text).ok_or_else(|| corrupt("the members of a session cannot be read"))
    }
}

fn read(text: &str) -> Option<Members> {
    let mut lists = text.split(';').map(|list| list.split(',').filter(|item| !item.is_empty()));
    let (runs, edited, summaries, None) = (lists.next()?, lists.next()?, lists.next()?, lists.next()) else {
        return None;
    };
    let number = |text: &str| text.parse::<u64>().ok();
    let mut members = Members::default();
    for run in runs {
        let (first, last) = run.split_once('-').unwrap_or((run, run));
        let (first, last) = (Seq(number(first)?), Seq(number(last)?));
        let is_behind = members.runs.last().is_none_or(|(_, end)| end.next() < first);
        (first <= last && is_behind).then(|| members.runs.push((first, last)))?;
    }
    for item in edited {
        let mut words = item.split('.');
        let (seq, kept_by, by) = (number(words.next()?)?, number(words.next()?)?, number(words.next()?)?);
        words.next().is_none().then_some(())?;
        members.edited.push(Shortened { seq: Seq(seq), kept_by: Revision(kept_by), by: Revision(by) });
    }
    for item in summaries {
        let (key, made) = item.split_once('.')?;
        members.summaries.push(SummaryPlace { made: Revision(number(made)?), key: Seq(number(key)?) });
    }
    Some(members)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::collection::{btree_set, vec};
    use proptest::prelude::*;

    use super::*;

    fn members() -> impl Strategy<Value = Members> {
        let seqs = btree_set(0_u64..40, 0..20);
        (seqs, vec(any::<(bool, u8)>(), 40), vec(any::<(u8, u8)>(), 0..4)).prop_map(
            |(seqs, edits, summaries)| {
                let mut members = Members::default();
                members.add(seqs.iter().copied().map(Seq));
                for (seq, (is_edited, by)) in seqs.iter().zip(edits) {
                    let by = Revision(by.into());
                    if is_edited {
                        members.shorten(Shortened { seq: Seq(*seq), kept_by: by.next(), by });
                    }
                }
                let place = |(key, made): (u8, u8)| SummaryPlace {
                    made: Revision(made.into()),
                    key: Seq(key.into()),
                };
                members.summaries = summaries.into_iter().map(place).collect();
                members.summaries.sort_unstable_by_key(|place| (place.key, place.made));
                members.summaries.dedup();
                members
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_written_is_read(members in members()) {
            prop_assert_eq!(Members::parse(&members.text()).unwrap(), members);
        }

        #[test]
        fn nothing_is_read_from_what_nobody_wrote(text in "[0-9,;.-]{0,16}") {
            if let Ok(members) = Members::parse(&text) {
                prop_assert_eq!(Members::parse(&members.text()).unwrap(), members);
            }
        }

        #[test]
        fn it_is_a_set(members in members(), out in btree_set(0_u64..40, 0..20)) {
            let all: BTreeSet<u64> = members.seqs().map(|seq| seq.0).collect();
            prop_assert_eq!(members.len(), all.len() as u64);
            let out: Vec<Seq> = out.into_iter().map(Seq).filter(|seq| members.contains(*seq)).collect();
            let places = members.summaries.get(..members.summaries.len() / 2).unwrap_or_default().to_vec();
            let mut left = members.clone();
            let taken = left.take(&out, &places);
            prop_assert_eq!(taken.seqs().collect::<Vec<_>>(), out.clone());
            prop_assert_eq!(&taken.summaries, &places);
            for seq in (0..40).map(Seq) {
                prop_assert_eq!(members.contains(seq), all.contains(&seq.0));
                prop_assert_eq!(left.contains(seq), all.contains(&seq.0) && !out.contains(&seq));
                let of = if out.contains(&seq) { &taken } else { &left };
                prop_assert_eq!(of.shortened(seq), members.shortened(seq));
            }
            left.merge(taken);
            prop_assert_eq!(left, members);
        }
    }
}
