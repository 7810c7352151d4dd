//! Scripts of verdicts, which are tried one after another on a draft and on its naive twin.

use core::cell::RefCell;

use epitome_core::{
    Budget, Cell, Clamp, Draft, ELIDED_TOKENS_MAX, ElisionGap, FillError, Gap, Index, Outcome, PartKind,
    PartVerdict, Pass, Placeholders, Plan, PlannedEdit, Protection, Refusal, Replacement, Scratch, StandIn,
    StandIns, Strategy, Tokens, plan_with,
};

use crate::live;
use crate::message::Message;
use crate::naive::{Attempt, Naive, NaiveDraft};

/// Strategy that tries one verdict after the other, and records the result of each.
#[derive(Debug)]
pub struct Script<'s> {
    attempts: &'s [Attempt],
    /// The result of each attempt on the draft.
    pub said: RefCell<Vec<Result<(), Refusal>>>,
    tokens: RefCell<Vec<u64>>,
}

impl<'s> Script<'s> {
    /// Creates a script of these attempts, in this order.
    #[must_use]
    pub const fn new(attempts: &'s [Attempt]) -> Self {
        Self { attempts, said: RefCell::new(Vec::new()), tokens: RefCell::new(Vec::new()) }
    }
}

impl Strategy for Script<'_> {
    fn name(&self) -> &'static str {
        "script"
    }

    fn protection(&self) -> Protection {
        NaiveDraft::strategy().protection()
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        let index = draft.index();
        let leaders: Vec<u32> = index.groups().map(|group| group.leader()).collect();
        for attempt in self.attempts {
            let part = |at: usize| index.part(u32::try_from(at).unwrap()).unwrap();
            let said = match *attempt {
                Attempt::Drop(group) => draft.drop_group(leaders[group]),
                Attempt::Elide(at, allowance) => {
                    let may = draft.may_elide(&part(at), Tokens(allowance));
                    let done = draft.elide(&part(at), Tokens(allowance));
                    assert_eq!(may, done.is_ok());
                    done
                }
                Attempt::Clamp(at, head, tail) => {
                    let clamp = Clamp { head: Tokens(head), tail: Tokens(tail) };
                    let may = draft.may_clamp(&part(at), clamp);
                    let done = draft.clamp(&part(at), clamp);
                    assert_eq!(may, done.is_ok());
                    done
                }
                Attempt::Replace(first, last, allowance) => {
                    draft.replace(leaders[first], leaders[last], Tokens(allowance))
                }
                Attempt::Record(first, last, allowance) => {
                    draft.record(leaders[first], leaders[last], Tokens(allowance))
                }
            };
            self.said.borrow_mut().push(said);
            self.tokens.borrow_mut().push(draft.tokens());
        }
    }
}

/// An encoded attempt: its kind, the number of the group or part, a choice, an amount.
pub type Figures = (u8, u8, u8, u16);

/// Decodes the attempts.
#[must_use]
pub fn attempts(figures: &[Figures], draft: &NaiveDraft<'_>) -> Vec<Attempt> {
    let (groups, parts) = (draft.groups.len(), draft.parts.len());
    let one = |(what, which, other, amount): &Figures| {
        let (group, part) = (usize::from(*which) % groups, usize::from(*which).checked_rem(parts));
        let amount = u32::from(*amount);
        match (what % 8, part) {
            (0, _) => Attempt::Drop(group),
            (1..=3, Some(part)) => {
                // Among others the largest allowance that a cell holds, and the next larger one.
                let most = ELIDED_TOKENS_MAX.0;
                Attempt::Elide(part, [0, 1, 9, most, most + 1, amount][usize::from(*other) % 6])
            }
            (4..=5, Some(part)) => {
                let size = [0, 1, 10, 2, 100, amount][usize::from(*other) % 6];
                Attempt::Clamp(part, size, u32::from(*other) % 2)
            }
            _ => {
                let end = (group + usize::from(*other) % 6).min(groups - 1);
                // At times from the end of a span to its beginning.
                let (first, last) = if *other >= 250 { (end, group) } else { (group, end) };
                match what % 8 {
                    7 => Attempt::Record(first, last, amount % 64),
                    _ => Attempt::Replace(first, last, amount % 64),
                }
            }
        }
    };
    // An empty conversation has no groups.
    figures.iter().filter(|_| groups > 0).map(one).collect()
}

/// Callback with an attempt, its result, and the verdicts before it.
pub type Noted<'n> = &'n mut dyn FnMut(Attempt, Result<(), Refusal>, &str);

/// Tries a script on a draft and on its twin. Each attempt has the same result, and the plan states its correct size.
/// Calls `noted` after each attempt. Returns whether summaries were joined.
///
/// # Errors
/// The first difference.
pub fn compare(messages: &[Message], figures: &[Figures], noted: Noted<'_>) -> Result<bool, String> {
    let naive = Naive::new(messages);
    compare_attempts(messages, &attempts(figures, &NaiveDraft::new(&naive)), noted)
}

/// Compares the draft and its twin as [`compare`] does, on these attempts.
///
/// # Errors
/// The first difference.
pub fn compare_attempts(
    messages: &[Message],
    attempts: &[Attempt],
    noted: Noted<'_>,
) -> Result<bool, String> {
    let naive = Naive::new(messages);
    let mut twin = NaiveDraft::new(&naive);
    let index = live::index_of(messages).0;
    let view = index.view();
    compare_parts(view, &twin)?;
    let script = Script::new(attempts);
    let (mut cells, mut room) = (vec![Cell::default(); view.cell_count()], [Replacement::default(); 3]);
    let outcome = planned(view, &script, &mut cells, &mut room);
    let (said, tokens) = (script.said.borrow(), script.tokens.borrow());
    for ((attempt, said), tokens) in attempts.iter().zip(said.iter()).zip(tokens.iter()) {
        let before = twin.letters();
        let expected = (twin.attempt(*attempt), twin.tokens());
        if (*said, *tokens) != expected {
            return Err(format!("{:?}, not {expected:?} to {attempt:?} of {before}", (said, tokens)));
        }
        noted(*attempt, *said, &before);
    }
    let Some(plan) = outcome else { return Ok(false) };
    let joined = twin.settle();
    let (letters, tokens) = (plan.verdicts().to_string(), plan.tokens_after());
    if (&letters, tokens) != (&twin.letters(), twin.tokens()) {
        return Err(format!("{letters} of {tokens}, not {} of {}", twin.letters(), twin.tokens()));
    }
    let expected: Vec<_> =
        twin.replaced.iter().map(|summary| summary.covered(&naive, &twin.groups)).collect();
    let summaries = plan.summaries().map(|gap| (live::flat(gap.covers()), gap.allowance.0));
    let summaries: Vec<_> = summaries.collect();
    if summaries != expected {
        return Err(format!("summaries {summaries:?}, not {expected:?}"));
    }
    is_honest(&plan, messages, &twin)?;
    Ok(joined)
}

/// The parts in an index are the parts of the twin, and each leads to its group.
fn compare_parts(view: Index<'_>, twin: &NaiveDraft<'_>) -> Result<(), String> {
    let seen = view.parts().map(|part| (part.position(), part.ordinal(), part.kind(), part.tokens().0));
    let expected = twin.parts.iter().map(|p| (p.message as u32, p.ordinal as u32, p.kind, p.tokens));
    let (seen, expected): (Vec<_>, Vec<_>) = (seen.collect(), expected.collect());
    if seen != expected {
        return Err(format!("parts {seen:?}, not {expected:?}"));
    }
    let leads = |part: &epitome_core::IndexedPart<'_>| {
        let same = view.part(part.at()).map(|same| same.leader()) == Some(part.leader());
        same && part.group().is_some_and(|group| group.parts().any(|own| own.at() == part.at()))
    };
    let stray = view.parts().find(|part| !leads(part));
    stray.map_or(Ok(()), |part| Err(format!("{part:?} is in no group")))
}

/// The plan of a script, if it changes something.
///
/// # Panics
/// If planning fails.
pub fn planned<'a>(
    view: Index<'a>,
    script: &Script<'_>,
    cells: &'a mut [Cell],
    room: &'a mut [Replacement],
) -> Option<Plan<'a>> {
    let window = view.tokens().max(1) * 2;
    let budget = Budget::builder().window(window).reserve(0).trigger(window).without_goal().min_reclaim(0);
    let scratch = Scratch::new(cells).with_replacements(room);
    match plan_with(view, &budget.build().unwrap(), Pass::Manual, script, scratch).unwrap() {
        Outcome::Planned(plan) => Some(plan),
        Outcome::Unchanged(_) => None,
    }
}

/// The size of a filled plan equals a count of its result from scratch. A plan is not filled if a stand-in is missing
/// or too large.
fn is_honest(plan: &Plan<'_>, messages: &[Message], twin: &NaiveDraft<'_>) -> Result<(), String> {
    let smallest = |kind: PartKind| {
        let of_kind = plan.shortened().filter(|(part, _)| part.kind() == kind);
        let allowances = of_kind.filter_map(|(_, verdict)| match verdict {
            PartVerdict::Elide(allowance) => Some(allowance),
            _ => None,
        });
        allowances.min()
    };
    let note = |kind| StandIn::new("[-]", smallest(kind).unwrap_or(Tokens(9)));
    let notes = Placeholders::new()
        .with_tool_result(note(PartKind::ToolResult))
        .with_tool_input(note(PartKind::ToolInput))
        .with_media(note(PartKind::Media))
        .with_text(note(PartKind::Text));
    let summaries: Vec<_> =
        plan.summaries().map(|gap| StandIn::new("S.", Tokens(gap.allowance.0 / 2))).collect();
    let clamps: Vec<_> = plan.clamps().map(|gap| StandIn::new("h..t", gap.clamp.tokens_max())).collect();
    let stand_ins = StandIns::new(notes).with_summaries(&summaries).with_clamps(&clamps);
    let ready = plan.fill(stand_ins).map_err(|error| error.to_string())?;
    let edits: Vec<PlannedEdit<'_, '_>> = ready.edits().collect();
    let counted = count(&edits, messages, twin)?;
    if counted != ready.tokens_after() || counted > plan.tokens_after() {
        return Err(format!("{counted}, not {} of at most {}", ready.tokens_after(), plan.tokens_after()));
    }
    has_own_notes(plan, stand_ins, messages, twin)?;
    refuses(plan, stand_ins, &summaries, &clamps)
}

/// With a note for each elided part, the size is correct and each note is in the place of its own part. A note too many
/// or a missing note is refused.
fn has_own_notes(
    plan: &Plan<'_>,
    all: StandIns<'_>,
    messages: &[Message],
    twin: &NaiveDraft<'_>,
) -> Result<(), String> {
    let ensure = |holds: bool, what: &str| if holds { Ok(()) } else { Err(what.to_owned()) };
    let texts: Vec<String> = (0..plan.elisions().count()).map(|nth| format!("[{nth}]")).collect();
    let notes = texts.iter().zip(plan.elisions());
    let notes: Vec<_> = notes.map(|(text, gap)| StandIn::new(text, Tokens(gap.allowance.0 / 3))).collect();
    let ready = plan.fill(all.with_notes(&notes)).map_err(|error| error.to_string())?;
    let edits: Vec<PlannedEdit<'_, '_>> = ready.edits().collect();
    ensure(count(&edits, messages, twin)? == ready.tokens_after(), "the size with own notes")?;
    let stand_in = |position: u32, ordinal: u32| {
        edits.iter().find_map(|edit| match edit {
            PlannedEdit::Part(part) if (part.position, part.ordinal) == (position, ordinal) => part.stand_in,
            _ => None,
        })
    };
    let in_place = |(gap, note): (ElisionGap<'_>, &StandIn<'_>)| {
        stand_in(gap.part.position(), gap.part.ordinal()) == Some(*note)
    };
    ensure(plan.elisions().zip(&notes).all(in_place), "a note in another place")?;
    let more = [&notes[..], &[StandIn::new("x", Tokens(0))]].concat();
    ensure(plan.fill(all.with_notes(&more)).is_err(), "a note too many")?;
    match notes.split_last() {
        Some((_, rest)) if !rest.is_empty() => {
            let missing = plan.fill(all.with_notes(rest));
            ensure(matches!(missing, Err(FillError::Missing(Gap::Placeholder(_)))), "a missing note")
        }
        _ => Ok(()),
    }
}

fn refuses(
    plan: &Plan<'_>,
    all: StandIns<'_>,
    summaries: &[StandIn<'_>],
    clamps: &[StandIn<'_>],
) -> Result<(), String> {
    let ensure = |holds: bool, what: &str| if holds { Ok(()) } else { Err(what.to_owned()) };
    if let Some((last, rest)) = summaries.split_last() {
        let number = u32::try_from(rest.len()).unwrap();
        let missing = plan.fill(all.with_summaries(rest));
        ensure(missing == Err(FillError::Missing(Gap::Summary(number))), "a missing summary")?;
        let allowance = plan.summaries().last().unwrap().allowance;
        // Two joined summaries can have the largest amount: there is no larger one.
        if let Some(over) = allowance.0.checked_add(1) {
            let mut large = summaries.to_vec();
            large[rest.len()] = StandIn::new(last.text, Tokens(over));
            let large = plan.fill(all.with_summaries(&large));
            ensure(matches!(large, Err(FillError::TooLarge { .. })), "a large summary")?;
        }
        let mut empty = summaries.to_vec();
        empty[0] = StandIn::new(" \n", Tokens(0));
        ensure(
            plan.fill(all.with_summaries(&empty)) == Err(FillError::Empty(Gap::Summary(0))),
            "an empty one",
        )?;
    }
    let more = [clamps, &[StandIn::new("x", Tokens(0))]].concat();
    ensure(plan.fill(all.with_clamps(&more)) == Err(FillError::TooMany), "one too many")
}

/// Tokens of a conversation after a store has written the edits.
///
/// # Errors
/// An edit that the store cannot write.
pub fn count(
    edits: &[PlannedEdit<'_, '_>],
    messages: &[Message],
    twin: &NaiveDraft<'_>,
) -> Result<u64, String> {
    let mut sizes: Vec<Option<u64>> =
        messages.iter().map(|message| Some(u64::from(message.tokens))).collect();
    let mut added = 0_u64;
    for edit in edits {
        match edit {
            PlannedEdit::Hide(positions) => {
                for at in positions.clone() {
                    sizes[at as usize].take().ok_or("hidden twice")?;
                }
            }
            PlannedEdit::Summary(summary) => {
                added += u64::from(summary.stand_in.tokens.0);
                let hidden = summary.covers().flatten().all(|at| sizes[at as usize].is_none());
                let first = summary.covers().flatten().min() == Some(summary.position);
                if !hidden || !first {
                    return Err(format!("{summary:?}"));
                }
            }
            PlannedEdit::Part(part) => {
                let message = &messages[part.position as usize];
                let size = sizes[part.position as usize].as_mut().ok_or("a part of a hidden message")?;
                *size -= u64::from(message.part_size(part.ordinal as usize).0);
                *size += part.stand_in.map_or(0, |note| u64::from(note.tokens.0));
                if u64::from(message.tokens) < *size {
                    return Err(format!("message {} has grown", part.position));
                }
            }
            _ => return Err("an edit of a new kind".into()),
        }
    }
    let held = |group: &crate::naive::Group| {
        let sizes: Vec<u64> = group.members.iter().filter_map(|at| sizes[*at]).collect();
        sizes.iter().sum::<u64>().min(u64::from(u32::MAX))
    };
    Ok(twin.groups.iter().map(held).sum::<u64>() + added)
}
