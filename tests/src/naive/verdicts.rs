//! Verdicts on groups and parts by their rules, one attempt after another. Everything is added up again each time.

use core::cmp::Ordering;

use epitome_compactors::Strength;
use epitome_core::attribution::SourceKind;
use epitome_core::message::Role;
use epitome_core::{Clamp, ELIDED_TOKENS_MAX, GroupKind, PartKind, Refusal, Tokens};

use super::join::joined;
use super::{Group, Naive, Protected, Summary, answers};
use crate::message::Part;
use crate::strategy::TestStrategy;

/// An attempt to write a verdict. Groups and parts have numbers from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// Hide a group.
    Drop(usize),
    /// Put a note in the place of a part.
    Elide(usize, u32),
    /// Keep only the ends of a part.
    Clamp(usize, u32, u32),
    /// Put one summary in the place of groups.
    Replace(usize, usize, u32),
    /// Put a ledger in the place of groups, also of hidden ones.
    Record(usize, usize, u32),
}

/// A part that may be shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortened {
    /// Its message.
    pub message: usize,
    /// Its place in it.
    pub ordinal: usize,
    /// The kind.
    pub kind: PartKind,
    /// Its size.
    pub tokens: u32,
    /// The maximum size by its verdict, if it has one.
    pub left: Option<u32>,
}

impl Shortened {
    /// The maximum size now.
    #[must_use]
    pub fn now(&self) -> u32 {
        self.left.unwrap_or(self.tokens)
    }
}

/// The verdicts so far.
#[derive(Debug)]
pub struct NaiveDraft<'a> {
    naive: &'a Naive<'a>,
    /// The groups.
    pub groups: Vec<Group>,
    /// The verdict of each group: `K`, `D` or `R`.
    pub verdicts: Vec<char>,
    /// The parts, in the order of their messages.
    pub parts: Vec<Shortened>,
    /// The summaries.
    pub replaced: Vec<Summary>,
    /// The protected groups.
    pub protected: Protected,
    /// Whether each group goes with the last step that relies on it.
    waits: Vec<bool>,
    clamps: Vec<(u32, u32)>,
    /// A rule that is left out, as in a draft without this rule.
    without: Option<Refusal>,
}

impl<'a> NaiveDraft<'a> {
    /// A strategy that protects little, so that as many attempts as possible are legal.
    #[must_use]
    pub const fn strategy() -> TestStrategy {
        TestStrategy::Truncate { recent: 0, system: false, first_user: false, strength: Strength::Light }
    }

    /// A draft that keeps all groups except orphans.
    #[must_use]
    pub fn new(naive: &'a Naive<'a>) -> Self {
        let groups = naive.groups();
        let protected = Protected::new(naive, &groups, &Self::strategy());
        let verdicts = groups.iter().map(|group| if group.kind == GroupKind::Orphan { 'D' } else { 'K' });
        let verdicts = verdicts.collect();
        let parts = (0..naive.messages.len()).flat_map(|at| parts_of(naive, at)).collect();
        Self {
            naive,
            verdicts,
            parts,
            replaced: Vec::new(),
            protected,
            waits: vec![false; groups.len()],
            groups,
            clamps: Vec::new(),
            without: None,
        }
    }

    /// The draft without one of the rules.
    #[must_use]
    pub const fn without(mut self, rule: Refusal) -> Self {
        self.without = Some(rule);
        self
    }

    /// Refuses an attempt by a rule, unless the rule is left out.
    fn refuse(&self, rule: Refusal) -> Result<(), Refusal> {
        if self.without == Some(rule) { Ok(()) } else { Err(rule) }
    }

    /// Writes a verdict.
    ///
    /// # Errors
    /// The rule that the verdict breaks.
    pub fn attempt(&mut self, attempt: Attempt) -> Result<(), Refusal> {
        match attempt {
            Attempt::Drop(group) => {
                self.may_go(group)?;
                match self.naive.opens(&self.groups[group]) {
                    true => self.waits[group] = true,
                    false => self.verdicts[group] = 'D',
                }
            }
            Attempt::Elide(part, allowance) => {
                self.may_shorten(part)?;
                let Shortened { kind, left, .. } = self.parts[part];
                let reasoning = kind == PartKind::Reasoning;
                if reasoning && self.groups[self.group_of(part)].turn == self.naive.turn {
                    self.refuse(Refusal::CurrentTurn)?;
                }
                if reasoning && self.naive.only_reasons(self.parts[part].message) {
                    self.refuse(Refusal::OnlyContent)?;
                }
                if reasoning && left.is_some() {
                    self.refuse(Refusal::Edited)?;
                }
                if !reasoning {
                    self.is_less(part, allowance)?;
                }
                if !reasoning && allowance > ELIDED_TOKENS_MAX.0 {
                    self.refuse(Refusal::NoRoom)?;
                }
                self.parts[part].left = Some(if reasoning { 0 } else { allowance });
            }
            Attempt::Clamp(part, head, tail) => {
                self.may_shorten(part)?;
                if !matches!(
                    self.parts[part].kind,
                    PartKind::ToolResult | PartKind::ToolInput | PartKind::Text
                ) {
                    self.refuse(Refusal::NoEnds)?;
                }
                let left = Clamp { head: Tokens(head), tail: Tokens(tail) }.tokens_max().0;
                self.is_less(part, left)?;
                if !self.clamps.contains(&(head, tail)) {
                    if self.clamps.len() == 4 {
                        self.refuse(Refusal::NoRoom)?;
                    }
                    self.clamps.push((head, tail));
                }
                self.parts[part].left = Some(left);
            }
            Attempt::Replace(first, last, allowance) => {
                let shown = |draft: &Self, at: usize| draft.verdicts[at] != 'D';
                let inside = self.span(first, last, &shown)?;
                self.replace(inside, allowance, None)?;
            }
            Attempt::Record(first, last, allowance) => {
                let all = self.groups.iter().filter(|group| group.kind != GroupKind::Orphan);
                let all: u64 = all.map(|group| self.naive.tokens(group)).sum();
                let taken = all.saturating_sub(self.tokens());
                let letters = self.letters();
                let takes = |(group, letter): (&Group, char)| {
                    let counts = !matches!(group.kind, GroupKind::Orphan | GroupKind::Summary);
                    counts && matches!(letter, 'D' | 'E')
                };
                if !self.groups.iter().zip(letters.chars()).any(takes) {
                    return Err(Refusal::OnlySummaries);
                }
                let counts = |draft: &Self, at: usize| {
                    let unseen = matches!(draft.groups[at].kind, GroupKind::Orphan | GroupKind::System);
                    draft.verdicts[at] != 'D' || !unseen
                };
                let inside = self.span(first, last, &counts)?;
                self.replace(inside, allowance, Some(taken))?;
            }
        }
        self.forget_edits();
        Ok(())
    }

    /// The groups from one to another that count, if each of them may be replaced.
    fn span(
        &self,
        first: usize,
        last: usize,
        counts: &dyn Fn(&Self, usize) -> bool,
    ) -> Result<Vec<usize>, Refusal> {
        if first > last {
            return Err(Refusal::NoGroup);
        }
        let inside: Vec<usize> =
            (first..=last).filter(|at| [first, last].contains(at) || counts(self, *at)).collect();
        for at in &inside {
            if self.verdicts[*at] != 'D' || !counts(self, *at) {
                self.may_go(*at)?;
            }
            if self.groups[*at].kind == GroupKind::System {
                self.refuse(Refusal::Instructions)?;
            }
        }
        let visible = |at: &usize| self.verdicts[*at] != 'D';
        let beside = [(0..first).rfind(visible), (last + 1..self.groups.len()).find(visible)];
        let loose = |at: &usize| self.verdicts[*at] == 'R' || self.is_loose(*at);
        if beside.iter().flatten().any(loose) {
            self.refuse(Refusal::SummaryBeside)?;
        }
        Ok(inside)
    }

    /// Puts one summary in the place of these groups. For a ledger, `gone` is the number of tokens that are already
    /// removed.
    fn replace(&mut self, inside: Vec<usize>, allowance: u32, gone: Option<u64>) -> Result<(), Refusal> {
        let (is_ledger, taken) = (gone.is_some(), gone.unwrap_or(0));
        let is_summary = |at: &usize| self.groups[*at].kind == GroupKind::Summary;
        if !is_ledger && inside.iter().all(is_summary) {
            self.refuse(Refusal::OnlySummaries)?;
        }
        let shown = inside.iter().filter(|at| self.verdicts[**at] != 'D');
        let tokens: u64 = shown.map(|at| self.tokens_of(*at)).sum();
        if tokens + taken <= u64::from(allowance) {
            self.refuse(Refusal::NotSmaller)?;
        }
        if self.replaced.len() == 3 {
            self.refuse(Refusal::NoRoom)?;
        }
        inside.iter().for_each(|at| self.verdicts[*at] = 'R');
        self.replaced.push(Summary { groups: inside, tokens: allowance });
        Ok(())
    }

    /// Whether a group is an earlier summary that nothing protects.
    fn is_loose(&self, at: usize) -> bool {
        self.groups[at].kind == GroupKind::Summary && !self.protected.hard[at]
    }

    /// Ends the script: drops the groups whose steps are gone, and joins summaries that stand side by side. Returns
    /// whether any were joined.
    pub fn settle(&mut self) -> bool {
        for at in 0..self.groups.len() {
            let alone = self.naive.relying(&self.groups, at).all(|step| self.verdicts[step] != 'K');
            if self.waits[at] && self.verdicts[at] == 'K' && alone {
                self.verdicts[at] = 'D';
            }
        }
        let visible: Vec<usize> = (0..self.groups.len()).filter(|at| self.verdicts[*at] != 'D').collect();
        let left = |at: usize| self.is_loose(at).then(|| self.tokens_of(at));
        let before: usize = self.replaced.iter().map(|summary| summary.groups.len()).sum();
        let summaries = joined(self.replaced.clone(), &visible, &left);
        let after: usize = summaries.iter().map(|summary| summary.groups.len()).sum();
        let any = (summaries.len(), after) != (self.replaced.len(), before);
        for at in summaries.iter().flat_map(|summary| &summary.groups) {
            self.verdicts[*at] = 'R';
        }
        self.replaced = summaries;
        self.forget_edits();
        any
    }

    /// A group that does not stay has no shortened parts.
    fn forget_edits(&mut self) {
        for part in 0..self.parts.len() {
            if self.verdicts[self.group_of(part)] != 'K' {
                self.parts[part].left = None;
            }
        }
    }

    fn may_go(&self, group: usize) -> Result<(), Refusal> {
        let rules = [
            (self.protected.hard[group], Refusal::Protected),
            (self.verdicts[group] == 'D', Refusal::Dropped),
            (self.verdicts[group] == 'R', Refusal::Replaced),
            (self.protected.held[group], Refusal::NewestStep),
        ];
        self.first_broken(&rules)
    }

    fn is_less(&self, part: usize, left: u32) -> Result<(), Refusal> {
        let Shortened { tokens, left: now, .. } = self.parts[part];
        if now.is_none() && left >= tokens {
            self.refuse(Refusal::NotSmaller)?;
        }
        if now.is_some_and(|now| left >= now) {
            self.refuse(Refusal::Edited)?;
        }
        Ok(())
    }

    fn may_shorten(&self, part: usize) -> Result<(), Refusal> {
        let group = self.group_of(part);
        let rules = [
            (self.verdicts[group] == 'D', Refusal::Dropped),
            (self.verdicts[group] == 'R', Refusal::Replaced),
            (self.protected.hard[group], Refusal::Protected),
            (self.naive.tokens(&self.groups[group]) == u64::from(u32::MAX), Refusal::Uncounted),
        ];
        self.first_broken(&rules)
    }

    fn first_broken(&self, rules: &[(bool, Refusal)]) -> Result<(), Refusal> {
        rules.iter().filter(|(broken, _)| *broken).try_for_each(|(_, rule)| self.refuse(*rule))
    }

    /// The group of a part.
    #[must_use]
    pub fn group_of(&self, part: usize) -> usize {
        let message = self.parts[part].message;
        self.groups.iter().position(|group| group.members.contains(&message)).expect("each is in a group")
    }

    fn tokens_of(&self, group: usize) -> u64 {
        let parts = (0..self.parts.len()).filter(|part| self.group_of(*part) == group);
        let freed = parts.filter_map(|at| Some(self.parts[at].tokens.saturating_sub(self.parts[at].left?)));
        self.naive.tokens(&self.groups[group]).saturating_sub(freed.map(u64::from).sum())
    }

    /// The size of the request, at most.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        let kept = (0..self.groups.len()).filter(|at| self.verdicts[*at] == 'K');
        let summaries = self.replaced.iter().map(|summary| u64::from(summary.tokens));
        kept.map(|at| self.tokens_of(at)).sum::<u64>() + summaries.sum::<u64>()
    }

    /// One letter a group.
    #[must_use]
    pub fn letters(&self) -> String {
        let edited = |at: usize| {
            (0..self.parts.len()).any(|part| self.parts[part].left.is_some() && self.group_of(part) == at)
        };
        let letter = |at: usize| if edited(at) { 'E' } else { self.verdicts[at] };
        (0..self.groups.len()).map(letter).collect()
    }
}

/// The parts of one message that may be shortened.
pub(super) fn parts_of(naive: &Naive<'_>, at: usize) -> Vec<Shortened> {
    let message = &naive.messages[at];
    let is_model = message.role == Role::Assistant;
    let answers_it = |part: &Part| matches!(part, Part::Result(_) | Part::Sealed(_) | Part::Approves(_));
    let answer = message.parts.iter().position(answers_it);
    // One of the latest eight calls before it that the provider ran.
    let ran_here = |ordinal: usize, result: &str| {
        let before = message.parts[..ordinal].iter().rev();
        let ran = before.filter_map(|part| if let Part::HostedCall(id) = part { Some(id) } else { None });
        ran.take(8).any(|id| id == result)
    };
    let orphan = !is_model && (message.role == Role::Tool || answers(message).is_some());
    let silent = matches!(message.role, Role::System | Role::Developer)
        || message.source == SourceKind::Compaction
        || orphan && naive.answers[at].is_none();
    let kind = |(ordinal, part): (usize, &Part)| {
        let size = message.part_size(ordinal).0;
        let kind = match part {
            Part::Result(_) | Part::Sealed(_) if !is_model && answer == Some(ordinal) => PartKind::ToolResult,
            Part::Result(id) if is_model && ran_here(ordinal, id) => PartKind::ToolResult,
            Part::Call(_) if is_model => PartKind::ToolInput,
            Part::Reasoning(_) | Part::Item | Part::Signed if is_model => PartKind::Reasoning,
            Part::Image => PartKind::Media,
            Part::Text(text) if text.len() >= 512 && size.cmp(&512) != Ordering::Less => PartKind::Text,
            _ => return None,
        };
        Some(Shortened { message: at, ordinal, kind, tokens: size, left: None })
    };
    message.parts.iter().enumerate().filter(|_| !silent).filter_map(kind).collect()
}
