//! Spans of groups that one summary replaces.

use super::{Cell, Draft, Refusal, Verdict};
use crate::Tokens;
use crate::index::{Group, GroupKind};

/// The memory for one span of groups that a summary replaces. The caller provides one of them for each summary of a
/// plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Replacement {
    /// The number of its first group.
    pub(crate) first: u32,
    /// The number of its last group.
    pub(crate) last: u32,
    /// The maximum size of the summary as a message, in tokens.
    pub(crate) allowance: Tokens,
    pub(crate) writer: Writer,
}

/// Division of the allowance of a summarizer's summaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quoting {
    /// The maximum number of tokens for the words of users.
    pub(crate) quotes: Tokens,
    /// The maximum number of tokens for all other content.
    pub(crate) prose: Tokens,
}

/// The writer of a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Writer {
    /// A model, which can judge the importance of content.
    #[default]
    Summarizer,
    /// No model: a digest consists of the beginnings of texts.
    Digest,
    /// No model: a ledger lists the identifiers of all groups and parts that the plan hides or shortens.
    Ledger,
}

impl Draft<'_> {
    /// Replaces all visible groups from number `first` to number `last` with one summary, a message of at most
    /// `allowance` tokens.
    ///
    /// A summary next to the span has to be part of it, so that summaries never nest. The span may hold neither
    /// protected groups nor instructions. If the groups between two summaries are dropped later, the two become one
    /// when the plan is made: it covers the groups of both, and has the allowance of both.
    ///
    /// # Errors
    /// [`Refusal`] if the first or the last group does not exist, if the first is behind the last, or if a group is
    /// dropped, replaced, protected, one of the newest steps or an instruction. Also if the span holds only summaries, if a summary is next to it, if the
    /// summary is not smaller than the span, or if there is no memory for another replacement. The draft is unchanged
    /// then.
    pub fn replace(&mut self, first: u32, last: u32, allowance: Tokens) -> Result<(), Refusal> {
        self.replace_by(Writer::Summarizer, first, last, allowance)
    }

    /// Replaces groups by a summary that `writer` writes.
    ///
    /// # Errors
    /// [`Refusal`] as for [`replace`](Self::replace). The draft is unchanged then.
    pub fn replace_by(
        &mut self,
        writer: Writer,
        first: u32,
        last: u32,
        allowance: Tokens,
    ) -> Result<(), Refusal> {
        let tokens = self.check_span(first, last)?;
        if !(first..=last).any(|at| self.visible(at).is_some_and(|group| group.kind() != GroupKind::Summary))
        {
            return Err(Refusal::OnlySummaries);
        }
        self.put(Replacement { first, last, allowance, writer }, tokens)
    }

    /// Lets the summaries of a summarizer quote the users in their spans.
    ///
    /// In the allowance of each summary, the words of users may have at most `quotes` tokens, and all other content at
    /// most `prose` tokens.
    ///
    /// ```
    /// use epitome_core::message::SimpleMessage;
    /// use epitome_core::{
    ///     ArrayTable, Budget, Cell, Draft, IndexBuf, OpenCallSlots, Outcome, Pass, Replacement, Scratch, Span, Strategy,
    ///     Tokens, Writer, plan_with,
    /// };
    ///
    /// /// A digest of the second turn, and a summary of the fourth.
    /// #[derive(Debug)]
    /// struct Example;
    ///
    /// impl Strategy for Example {
    ///     fn name(&self) -> &'static str {
    ///         "example"
    ///     }
    ///
    ///     fn plan(&self, draft: &mut Draft<'_>) {
    ///         draft.quote(Tokens(30), Tokens(90));
    ///         let _ = draft.replace_by(Writer::Digest, 2, 3, Tokens(60));
    ///         let _ = draft.replace(6, 7, Tokens(60));
    ///     }
    /// }
    ///
    /// let mut index = IndexBuf::<ArrayTable<Span, 16>, OpenCallSlots<4>>::new();
    /// for _ in 0..8 {
    ///     index.push(&SimpleMessage::user("And then?"), Tokens(40))?;
    ///     index.push(&SimpleMessage::assistant("Wait."), Tokens(40))?;
    /// }
    /// let (mut cells, mut room) = ([Cell::default(); 16], [Replacement::default(); 2]);
    /// let scratch = Scratch::new(&mut cells).with_replacements(&mut room);
    /// let budget = Budget::builder().window(2_000).trigger(1_000).without_goal().build()?;
    /// let Outcome::Planned(plan) = plan_with(index.view(), &budget, Pass::Manual, &Example, scratch)? else { unreachable!() };
    /// let mut gaps = plan.summaries().map(|gap| (gap.quotes, gap.prose));
    /// assert_eq!(gaps.next(), Some((Tokens(0), Tokens(60))));
    /// assert_eq!(gaps.next(), Some((Tokens(30), Tokens(60))));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub const fn quote(&mut self, quotes: Tokens, prose: Tokens) {
        self.quoting = Some(Quoting { quotes, prose });
    }

    /// Replaces a legal span with a summary that stands for `tokens` tokens.
    fn put(&mut self, replacement: Replacement, tokens: u64) -> Result<(), Refusal> {
        let Replacement { first, last, allowance, .. } = replacement;
        if tokens <= allowance.as_u64() {
            return Err(Refusal::NotSmaller);
        }
        self.add_replacement(replacement)?;
        self.join = Some(Self::join_summaries);
        let index = self.index;
        for group in (first..=last).filter_map(|at| index.group(at)) {
            if self.verdict(&group) == Verdict::Keep {
                self.cover(&group);
            }
        }
        self.tokens = self.tokens.saturating_add(allowance.as_u64());
        Ok(())
    }

    /// Puts a ledger of at most `allowance` tokens in the place of the groups from `first` to `last`, also of groups
    /// that were hidden already.
    ///
    /// The ledger stands for all groups and parts that the draft hides or shortens. It is smaller than these and the
    /// replaced groups together. The span may be an earlier ledger alone.
    ///
    /// # Errors
    /// [`Refusal`] as for [`replace`](Self::replace), and [`Refusal::OnlySummaries`] if the draft removes nothing but
    /// summaries. The draft is unchanged then.
    pub fn record(&mut self, first: u32, last: u32, allowance: Tokens) -> Result<(), Refusal> {
        let index = self.index;
        let taken = index.tokens().saturating_sub(self.tokens);
        let is_taken = |group: &Group<'_>| self.verdict(group) == Verdict::Drop || self.is_shortened(group);
        let counts = |group: &Group<'_>| !matches!(group.kind(), GroupKind::Orphan | GroupKind::Summary);
        if !index.groups().any(|group| counts(&group) && is_taken(&group)) {
            return Err(Refusal::OnlySummaries);
        }
        for group in (first..=last).filter_map(|at| index.group(at)) {
            let may_count = !matches!(group.kind(), GroupKind::Orphan | GroupKind::System);
            if self.verdict(&group) == Verdict::Drop && may_count {
                self.show(&group);
            }
        }
        let replacement = Replacement { first, last, allowance, writer: Writer::Ledger };
        let stands_for = |shown: u64| shown.saturating_add(taken);
        let done = self.check_span(first, last).and_then(|shown| self.put(replacement, stands_for(shown)));
        for group in (first..=last).filter_map(|at| index.group(at)) {
            let cell = self.cells.get_mut(group.leader() as usize);
            let Some(cell) = cell.filter(|cell| cell.has(Cell::SHOWN)) else { continue };
            cell.unset(Cell::SHOWN);
            if done.is_err() {
                self.hide(group.leader(), group.span());
            }
        }
        done
    }

    /// Shows a hidden summary again. From now on only [`drop_to_fit`](Self::drop_to_fit) may hide it.
    ///
    /// # Errors
    /// [`Refusal::NoGroup`] if no group has this leader, or if the group is no hidden summary. The draft is unchanged
    /// then.
    pub fn restore_summary(&mut self, leader: u32) -> Result<(), Refusal> {
        let group = self.index.group(leader).ok_or(Refusal::NoGroup)?;
        if group.kind() != GroupKind::Summary || self.verdict(&group) != Verdict::Drop {
            return Err(Refusal::NoGroup);
        }
        let cell = self.cells.get_mut(leader as usize).ok_or(Refusal::NoGroup)?;
        cell.unset(Cell::DROP | Cell::LAST);
        cell.set(Cell::HELD);
        self.tokens = self.tokens.saturating_add(group.tokens().as_u64());
        Ok(())
    }

    /// Shows a hidden group again.
    fn show(&mut self, group: &Group<'_>) {
        if let Some(cell) = self.cells.get_mut(group.leader() as usize) {
            cell.unset(Cell::DROP);
            cell.set(Cell::SHOWN);
            self.tokens = self.tokens.saturating_add(group.tokens().as_u64());
        }
    }

    /// Removes a kept group from the request, because a summary covers it.
    fn cover(&mut self, group: &Group<'_>) {
        self.forget_edits(group.leader());
        if let Some(cell) = self.cells.get_mut(group.leader() as usize) {
            cell.set(Cell::REPLACE);
        }
        self.tokens = self.tokens.saturating_sub(group.tokens().as_u64());
    }

    /// The present size of a group, in tokens: less than [`Group::tokens`] if parts of it are shortened.
    ///
    /// A shortened part counts with the maximum size of its stand-in. The verdict on the group is not considered.
    #[must_use]
    pub fn tokens_left(&self, group: &Group<'_>) -> u64 {
        self.cell(group.leader()).map_or(0, |cell| self.tokens_of(group, cell))
    }

    /// Tokens of the groups of a legal span together, without those that were hidden.
    fn check_span(&self, first: u32, last: u32) -> Result<u64, Refusal> {
        let ends = [first, last].map(|end| self.index.group(end));
        let ([Some(_), Some(end)], true) = (ends, first <= last) else { return Err(Refusal::NoGroup) };
        let mut tokens = 0_u64;
        for group in (first..=last).filter_map(|at| self.index.group(at)) {
            let cell = self.cell(group.leader()).ok_or(Refusal::NoGroup)?;
            match cell.verdict() {
                // A dropped group is not visible, and so not part of the span; but the first and the last group must be
                // visible.
                Verdict::Drop if ![first, end.leader()].contains(&group.leader()) => continue,
                _ => self.check_kept(cell)?,
            }
            if cell.has(Cell::HARD) {
                return Err(Refusal::Protected);
            }
            // A newest step that did not fit was hidden already.
            if cell.has(Cell::HELD) && !cell.has(Cell::SHOWN) {
                return Err(Refusal::NewestStep);
            }
            if group.kind() == GroupKind::System {
                return Err(Refusal::Instructions);
            }
            if !cell.has(Cell::SHOWN) {
                tokens = tokens.saturating_add(self.tokens_of(&group, cell));
            }
        }
        let before = (0..first).rev().find_map(|at| self.visible(at));
        let spans = u32::try_from(self.index.span_count()).unwrap_or(u32::MAX);
        let after = (last.saturating_add(1)..spans).find_map(|at| self.visible(at));
        if [before, after].into_iter().flatten().any(|beside| self.is_loose_summary(&beside)) {
            return Err(Refusal::SummaryBeside);
        }
        Ok(tokens)
    }

    /// Joins adjacent summaries: the groups between them may have been dropped after the summaries were requested. An
    /// earlier summary that nothing protects becomes part of the new one, and adds its tokens. Two earlier summaries
    /// that meet stay as they are, because no writer was asked for a new text.
    #[cold]
    fn join_summaries(&mut self) {
        let (index, mut run, mut joined, mut next) = (self.index, None::<Run>, 0, 0);
        for group in index.groups() {
            match self.verdict(&group) {
                Verdict::Drop => {}
                Verdict::Keep if !self.is_loose_summary(&group) => self.close(run.take(), &mut joined),
                _ => {
                    let known = self.replacements.get(next).copied();
                    let own = known.filter(|known| next < self.replaced && known.first == group.leader());
                    next = next.saturating_add(usize::from(own.is_some()));
                    let has = match own {
                        Some(own) => own.allowance.as_u64(),
                        None if self.verdict(&group) == Verdict::Keep => self.tokens_left(&group),
                        None => 0,
                    };
                    run = Some(Run::with(run, group.leader(), own, has));
                }
            }
        }
        self.close(run, &mut joined);
        self.replaced = joined;
    }

    /// Writes the joined summary of a run of summaries, if one of them is new.
    fn close(&mut self, run: Option<Run>, joined: &mut usize) {
        let Some(Run { replacement, asked: Some(asked) }) = run else { return };
        let index = self.index;
        for group in (replacement.first..=replacement.last).filter_map(|at| index.group(at)) {
            if self.verdict(&group) == Verdict::Keep {
                self.cover(&group);
            }
        }
        // The sum of two amounts may exceed the maximum of one: then the request shrinks by the rest.
        self.tokens = self.tokens.saturating_sub(asked).saturating_add(replacement.allowance.as_u64());
        // There are never more runs than replacements that were read.
        if let Some(place) = self.replacements.get_mut(*joined) {
            *place = replacement;
            *joined = joined.saturating_add(1);
        }
    }

    /// The group at `at`, if there is one and it is not dropped.
    fn visible(&self, at: u32) -> Option<Group<'_>> {
        self.index.group(at).filter(|group| self.verdict(group) != Verdict::Drop)
    }

    /// Whether a group is, or will be, a summary that nothing protects.
    fn is_loose_summary(&self, group: &Group<'_>) -> bool {
        let replaced = self.verdict(group) == Verdict::Replace;
        replaced || group.kind() == GroupKind::Summary && !self.is_protected(group)
    }

    /// Present tokens of a kept group.
    fn tokens_of(&self, group: &Group<'_>, cell: Cell) -> u64 {
        if !cell.has(Cell::EDITED) {
            return group.tokens().as_u64();
        }
        let freed = group
            .parts()
            .map(|part| part.tokens().as_u64().saturating_sub(self.part_tokens_left(&part).as_u64()));
        group.tokens().as_u64().saturating_sub(freed.sum())
    }

    /// Adds a replacement in its place among the others.
    fn add_replacement(&mut self, new: Replacement) -> Result<(), Refusal> {
        let end = self.replaced.checked_add(1).ok_or(Refusal::NoRoom)?;
        let room = self.replacements.get_mut(..end).ok_or(Refusal::NoRoom)?;
        let at =
            room.get(..self.replaced).map_or(0, |known| known.partition_point(|one| one.first < new.first));
        let mut carried = new;
        for place in room.iter_mut().skip(at) {
            core::mem::swap(place, &mut carried);
        }
        self.replaced = end;
        Ok(())
    }
}

/// Groups in a row that are, or will be, summaries.
#[derive(Debug, Clone, Copy)]
struct Run {
    replacement: Replacement,
    /// Tokens of the requested summaries in it together, if there is one.
    asked: Option<u64>,
}

impl Run {
    /// Adds the next group to a run, with `has` tokens; `own` is the replacement that begins with this group.
    fn with(run: Option<Self>, at: u32, own: Option<Replacement>, has: u64) -> Self {
        let begun = Replacement { first: at, last: at, allowance: Tokens::ZERO, writer: Writer::Digest };
        let Self { mut replacement, mut asked } = run.unwrap_or(Self { replacement: begun, asked: None });
        if let Some(own) = own {
            asked = Some(asked.unwrap_or(0).saturating_add(has));
            if replacement.writer == Writer::Digest || own.writer == Writer::Summarizer {
                replacement.writer = own.writer;
            }
        }
        replacement.last = at;
        let more = Tokens(u32::try_from(has).unwrap_or(u32::MAX));
        replacement.allowance = replacement.allowance.saturating_add(more);
        Self { replacement, asked }
    }
}
