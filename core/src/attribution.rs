//! Origin of a message, its authority, and its retention.
//!
//! Attribution is a field of every message. The component that adds the message sets it. The text of a message never
//! raises it: a tool result that claims to be a system message is a tool result. Files have no attributions, so their
//! readers lower it by the wording: for texts that an agent's program writes in the user's place, and for a ledger
//! ([`is_ledger`](crate::is_ledger)) in the model's place.

use crate::Seq;

/// The attribution of one message, borrowed from the storage of the message.
///
/// ```
/// use epitome_core::attribution::{AttributionView, Authority, Retention, SourceKind};
///
/// let mut instruction = AttributionView::caller(Authority::User);
/// assert_eq!((instruction.source, instruction.retention), (SourceKind::Caller, Retention::Normal));
/// // It stays through every compaction.
/// instruction.retention = Retention::Pinned;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct AttributionView<'a> {
    /// The component that added the message: the source id of a provider, or empty for the caller.
    pub source_id: &'a str,
    /// The kind of the component that added the message.
    pub source: SourceKind,
    /// The trust in the content of the message.
    pub authority: Authority,
    /// The retention of the message in compactions.
    pub retention: Retention,
    /// The messages that a derived message stands for, in ascending order, none overlapping; empty for an original.
    pub derived_from: &'a [SeqRange],
    /// The caller's own label, for filters at run time.
    pub label: Option<&'a str>,
}

impl AttributionView<'_> {
    /// The attribution of a caller's message with this authority, which is kept as long as there is room.
    #[must_use]
    pub const fn caller(authority: Authority) -> Self {
        Self {
            source_id: "",
            source: SourceKind::Caller,
            authority,
            retention: Retention::Normal,
            derived_from: &[],
            label: None,
        }
    }
}

/// The kind of a component that adds messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum SourceKind {
    /// The program that runs the agent: instructions, the user's input, the model's answers.
    #[default]
    Caller,
    /// A history provider: the message was loaded, not written in this run.
    History,
    /// A context provider: the message was retrieved or injected for this run.
    Context,
    /// A tool's output.
    Tool,
    /// A compaction: a summary or digest of other messages.
    Compaction,
}

/// The trust in a message's content, lowest first. A derived message has the minimum of its sources.
///
/// ```
/// use epitome_core::attribution::Authority;
///
/// assert!(Authority::Retrieved < Authority::Assistant && Authority::User < Authority::System);
/// // A summary never speaks as the user.
/// assert_eq!(Authority::of_summary([Authority::User, Authority::System]), Authority::Assistant);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum Authority {
    /// Output of tools and retrieved text: data, never instructions.
    Retrieved,
    /// The model's own words.
    Assistant,
    /// The user.
    User,
    /// The developer of the application.
    Developer,
    /// The operator of the system.
    System,
}

impl Authority {
    /// The authority of a message that is derived from others, word for word or by a rule: the lowest authority of the
    /// sources.
    ///
    /// Without a source, it is the lowest authority.
    ///
    /// ```
    /// use epitome_core::attribution::Authority;
    ///
    /// assert_eq!(Authority::min_of([Authority::User, Authority::Retrieved]), Authority::Retrieved);
    /// assert_eq!(Authority::min_of([]), Authority::Retrieved);
    /// ```
    #[must_use]
    pub fn min_of(sources: impl IntoIterator<Item = Self>) -> Self {
        sources.into_iter().min().unwrap_or(Self::Retrieved)
    }

    /// The authority of a summary of these sources: the lowest authority of the sources, and at most that of the model.
    ///
    /// A model writes the summary, so it never has more authority than the words of a model. The text of a tool that
    /// passes through a summary does not come back as an instruction of the user.
    ///
    /// ```
    /// use epitome_core::attribution::Authority;
    ///
    /// assert_eq!(Authority::of_summary([Authority::User, Authority::System]), Authority::Assistant);
    /// assert_eq!(Authority::of_summary([Authority::User, Authority::Retrieved]), Authority::Retrieved);
    /// ```
    #[must_use]
    pub fn of_summary(sources: impl IntoIterator<Item = Self>) -> Self {
        Self::min_of(sources).min(Self::Assistant)
    }
}

/// The rule for how long a message stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum Retention {
    /// The message is never compacted, and neither are the calls and results that belong to it.
    Pinned,
    /// The message is kept as long as there is room.
    #[default]
    Normal,
    /// The message is useful in this run only, and is not stored. The strategy `EphemeralFirst` drops it before other
    /// messages.
    Ephemeral,
}

/// Sequence numbers `first..=last`.
///
/// ```
/// use epitome_core::Seq;
/// use epitome_core::attribution::SeqRange;
///
/// let range = SeqRange { first: Seq(3), last: Seq(5) };
/// assert!(range.contains(Seq(5)) && !range.contains(Seq(6)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[expect(clippy::exhaustive_structs, reason = "two ends make a range; a third field would be another type")]
pub struct SeqRange {
    /// The first sequence number of the range.
    pub first: Seq,
    /// The last sequence number of the range, itself included.
    pub last: Seq,
}

impl SeqRange {
    /// Whether `seq` lies in the range.
    #[must_use]
    pub const fn contains(self, seq: Seq) -> bool {
        self.first.0 <= seq.0 && seq.0 <= self.last.0
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    const ALL: [Authority; 5] = [
        Authority::Retrieved,
        Authority::Assistant,
        Authority::User,
        Authority::Developer,
        Authority::System,
    ];

    /// Every set of sources: a set of bits is a set of authorities.
    fn every_set() -> impl Iterator<Item = Vec<Authority>> {
        (0_u32..1 << ALL.len()).map(|bits| {
            ALL.into_iter().enumerate().filter(|(at, _)| bits & (1 << at) != 0).map(|(_, one)| one).collect()
        })
    }

    #[test]
    fn the_order_is_that_of_trust() {
        assert!(ALL.is_sorted());
    }

    #[test]
    fn authority_never_rises() {
        for sources in every_set() {
            let (derived, summary) =
                (Authority::min_of(sources.clone()), Authority::of_summary(sources.clone()));
            assert!(sources.iter().all(|source| derived <= *source && summary <= *source), "{sources:?}");
            assert!(summary <= derived && summary <= Authority::Assistant, "{sources:?}");
            assert!(sources.is_empty() || sources.contains(&derived), "{sources:?}");
        }
    }

    #[test]
    fn deriving_in_steps_is_deriving_at_once() {
        // The sets are made once, not again for each pair: under miri that took longer than all other steps.
        let sets: Vec<_> = every_set().filter(|set| !set.is_empty()).collect();
        let min = |set: &[Authority]| Authority::min_of(set.iter().copied());
        let summary = |set: &[Authority]| Authority::of_summary(set.iter().copied());
        let derived: Vec<_> = sets.iter().map(|set| (set, min(set), summary(set))).collect();
        for (one, min_of_one, summary_of_one) in &derived {
            for (other, min_of_other, summary_of_other) in &derived {
                let all = [one.as_slice(), other.as_slice()].concat();
                assert_eq!(summary(&[*summary_of_one, *summary_of_other]), summary(&all));
                assert_eq!(min(&[*min_of_one, *min_of_other]), min(&all));
            }
        }
    }
}
