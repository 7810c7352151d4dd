//! Verdicts of a plan that can be applied again after another writer has changed the session.

use std::collections::BTreeMap;
use std::vec::Vec;

use epitome_core::{Clamp, Draft, Group, PartVerdict, Plan, Protection, Strategy, Tokens, Verdict, Writer};
use epitome_std::history::{History, Live};

/// Verdicts of a plan, by the sequence numbers of messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Again {
    name: &'static str,
    protection: Protection,
    dropped: Vec<Keys>,
    replaced: Vec<Span>,
    /// Each shortened part: its message, its ordinal in the message, its size, and its rest.
    parts: Vec<(Key, u32, Tokens, Left)>,
}

/// The messages of a group.
type Keys = Vec<Key>;

/// Sequence number of a message, twice; for a summary, the first and the last sequence number that it covers.
pub(super) type Key = (u64, u64);

pub(super) fn key_of(live: &Live) -> Key {
    (live.key.0, live.covers.last().map_or(live.key.0, |range| range.last.0))
}

/// Groups that one summary replaces, with the largest size of the summary.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Span {
    groups: Vec<Keys>,
    allowance: Tokens,
    writer: Writer,
}

/// Rest of a shortened part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Elided(Tokens),
    Clamped(Clamp),
}

impl Again {
    pub(super) fn of(plan: &Plan<'_>, live: &[Live], rule: &(dyn Strategy + Send + Sync)) -> Self {
        let index = plan.index();
        let with = |verdict| index.groups().filter(move |group| plan.verdict(group) == verdict);
        let mut replaced: Vec<Span> = Vec::new();
        let mut gaps = plan.summaries().peekable();
        for group in with(Verdict::Replace) {
            if let Some(gap) = gaps.next_if(|gap| gap.first.leader() == group.leader()) {
                replaced.push(Span { groups: Vec::new(), allowance: gap.allowance, writer: gap.writer });
            }
            if let Some(span) = replaced.last_mut() {
                span.groups.push(keys_of(&group, live));
            }
        }
        let parts = plan.shortened().filter_map(|(part, verdict)| {
            let left = match verdict {
                PartVerdict::Elide(allowance) => Left::Elided(allowance),
                PartVerdict::Clamp(clamp) => Left::Clamped(clamp),
                _ => return None,
            };
            Some((key_of(live.get(part.position() as usize)?), part.ordinal(), part.tokens(), left))
        });
        Self {
            name: rule.name(),
            protection: rule.protection(),
            dropped: with(Verdict::Drop).map(|group| keys_of(&group, live)).collect(),
            replaced,
            parts: parts.collect(),
        }
    }

    /// The first and the last message with a verdict.
    pub(super) fn extent(&self) -> Option<(Key, Key)> {
        let replaced = self.replaced.iter().flat_map(|span| &span.groups);
        let groups = self.dropped.iter().chain(replaced).flatten().copied();
        let mut keys = groups.chain(self.parts.iter().map(|(key, ..)| *key));
        let first = keys.next()?;
        Some(keys.fold((first, first), |(first, last), key| (first.min(key), last.max(key))))
    }

    /// The verdicts with the keys that the messages have in another history; `None` if a message has no key there.
    pub(super) fn renumbered(&self, numbers: &BTreeMap<Key, Key>) -> Option<Self> {
        let number = |key: &Key| numbers.get(key).copied();
        let keys = |keys: &Keys| keys.iter().map(number).collect::<Option<Keys>>();
        let groups = |groups: &[Keys]| groups.iter().map(keys).collect::<Option<Vec<_>>>();
        let spans =
            self.replaced.iter().map(|span| Some(Span { groups: groups(&span.groups)?, ..span.clone() }));
        let parts = self
            .parts
            .iter()
            .map(|(key, ordinal, tokens, left)| Some((number(key)?, *ordinal, *tokens, *left)));
        Some(Self {
            name: self.name,
            protection: self.protection,
            dropped: groups(&self.dropped)?,
            replaced: spans.collect::<Option<_>>()?,
            parts: parts.collect::<Option<_>>()?,
        })
    }

    /// The verdicts for the current state of a history; `None` if one of their messages has changed.
    pub(super) fn on(&self, history: &History) -> Option<Given> {
        let (index, live) = (history.index(), history.live());
        let now: BTreeMap<Key, (u32, Keys)> = index
            .groups()
            .filter_map(|group| {
                let keys = keys_of(&group, live);
                Some((*keys.first()?, (group.leader(), keys)))
            })
            .collect();
        let leader = |keys: &Keys| {
            let (leader, known) = now.get(keys.first()?)?;
            (known == keys).then_some(*leader)
        };
        let leaders = |groups: &[Keys]| groups.iter().map(leader).collect::<Option<Vec<_>>>();
        let replaced = self.replaced.iter().map(|span| {
            let leaders = leaders(&span.groups)?;
            Some((*leaders.first()?, *leaders.last()?, span.allowance, span.writer))
        });
        let places: BTreeMap<(Key, u32), (u32, Tokens)> = index
            .parts()
            .filter_map(|part| {
                let key = key_of(live.get(part.position() as usize)?);
                Some(((key, part.ordinal()), (part.at(), part.tokens())))
            })
            .collect();
        let parts = self.parts.iter().map(|(key, ordinal, tokens, left)| {
            let (at, now) = places.get(&(*key, *ordinal))?;
            (now == tokens).then_some((*at, *left))
        });
        Some(Given {
            name: self.name,
            protection: self.protection,
            dropped: leaders(&self.dropped)?,
            replaced: replaced.collect::<Option<_>>()?,
            parts: parts.collect::<Option<_>>()?,
        })
    }
}

fn keys_of(group: &Group<'_>, live: &[Live]) -> Keys {
    let positions = group.positions().flatten();
    positions.filter_map(|position| live.get(position as usize)).map(key_of).collect()
}

/// Verdicts by the numbers of groups and parts in one index.
#[derive(Debug)]
pub(super) struct Given {
    name: &'static str,
    protection: Protection,
    dropped: Vec<u32>,
    replaced: Vec<(u32, u32, Tokens, Writer)>,
    parts: Vec<(u32, Left)>,
}

impl Strategy for Given {
    fn name(&self) -> &'static str {
        self.name
    }

    fn protection(&self) -> Protection {
        self.protection
    }

    fn replaces(&self) -> bool {
        !self.replaced.is_empty()
    }

    /// A refused verdict is ignored here: the caller compares the resulting plan with the original one.
    fn plan(&self, draft: &mut Draft<'_>) {
        for (at, left) in &self.parts {
            let Some(part) = draft.index().part(*at) else { continue };
            let _ = match left {
                Left::Elided(allowance) => draft.elide(&part, *allowance),
                Left::Clamped(clamp) => draft.clamp(&part, *clamp),
            };
        }
        for leader in &self.dropped {
            let _ = draft.drop_group(*leader);
        }
        for (first, last, allowance, writer) in &self.replaced {
            let _ = draft.replace_by(*writer, *first, *last, *allowance);
        }
    }
}
