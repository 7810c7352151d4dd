//! Budgets, plans, and their commits.

use epitome_core::LEDGER_OPENING;
use libfuzzer_sys::arbitrary::{Result, Unstructured};

use super::border::*;
use super::machine::{ASSISTANT, DEVELOPER, Machine, SYSTEM, Shown, USER};
use super::words;

/// `EPITOME_KERNEL_PLAN_...`
const PLANNED: i32 = 1;
const AT_GOAL: i32 = 2;
const INFEASIBLE: i32 = 5;
/// `EPITOME_KERNEL_STRATEGY_...`: one that shortens, and the one that needs its number.
const CLEAR_TOOL_RESULTS: i32 = 2;
const WINDOW_TURNS: i32 = 5;
const BUDGET_ERRORS: [i32; 3] = [error::BUDGET_TRIGGER, error::BUDGET_GOAL, error::BUDGET_RECLAIM];

/// Mostly one that calls for a compaction of the messages that are there.
fn any_budget(machine: &Machine, program: &mut Unstructured<'_>) -> Result<Budget> {
    if program.ratio(7, 8)? {
        let tokens = machine.status().tokens + 2;
        let trigger = tokens * program.int_in_range(2..=9)? / 8 + 1;
        let goal = trigger * program.int_in_range(0..=7)? / 8;
        let window = trigger.max(tokens * program.int_in_range(1..=9)? / 8);
        return Ok(Budget { window, reserve: NONE, trigger, goal, min_reclaim: NONE });
    }
    let mut size = || words::size(program);
    Ok(Budget { window: size()?, reserve: size()?, trigger: size()?, goal: size()?, min_reclaim: size()? })
}

/// Checks a budget with the library: its figures are in order, or the error says which are not.
fn checked(budget: &Budget) -> core::result::Result<Budget, i32> {
    let mut filled = Place::new();
    // SAFETY: a budget, and a place for the output.
    let error =
        unsafe { epitome_kernel_budget_check(budget, filled.pointer(Wrong::No, core::ptr::null_mut())) };
    if error != error::OK {
        assert!(BUDGET_ERRORS.contains(&error) && filled.is_untouched());
        return Err(error);
    }
    let filled: Budget = filled.value();
    let given =
        [(budget.window, filled.window), (budget.reserve, filled.reserve), (budget.trigger, filled.trigger)];
    let rest = [(budget.goal, filled.goal), (budget.min_reclaim, filled.min_reclaim)];
    assert!(
        given.iter().chain(&rest).all(|(given, filled)| *given == 0 || given == filled),
        "{budget:?}, {filled:?}"
    );
    let reserve = if filled.reserve == NONE { 0 } else { filled.reserve };
    assert!(filled.trigger <= filled.window.saturating_sub(reserve), "{filled:?}");
    assert!(filled.goal == NONE || filled.goal < filled.trigger, "{filled:?}");
    // SAFETY: a budget that the library has made.
    assert_eq!(unsafe { epitome_kernel_budget_check(&filled, core::ptr::null_mut()) }, error::OK);
    Ok(filled)
}

/// Whether a compaction is due is a comparison with the trigger.
pub(super) fn budget(machine: &mut Machine, program: &mut Unstructured<'_>) -> Result<()> {
    let (budget, wrong) = (any_budget(machine, program)?, words::wrong(program)?);
    let checked = checked(&budget);
    let mut expected: Vec<_> = wrong.error().into_iter().collect();
    expected.extend(checked.as_ref().err());
    let mut is_due = Place::new();
    let error = machine.call(&expected, &[], |history| {
        // SAFETY: a budget, and a place for the output, or one of the errors above.
        unsafe { epitome_kernel_is_due(history, &budget, is_due.pointer(wrong, history)) }
    });
    match checked {
        Ok(budget) if error == error::OK => {
            assert_eq!(is_due.value(), u32::from(machine.status().tokens > budget.trigger));
        }
        _ => assert!(is_due.is_untouched()),
    }
    Ok(())
}

fn any_stages(program: &mut Unstructured<'_>) -> Result<Vec<Stage>> {
    // Results are cleared, and no more than that, where nothing else comes first.
    if program.ratio(1, 3)? {
        return Ok(vec![Stage { strategy: CLEAR_TOOL_RESULTS, keep: u32::MAX }]);
    }
    let count = program.int_in_range(0..=15)?;
    let count = if count < 2 { count * 5 } else { 1 + count % 3 };
    let stage = |program: &mut Unstructured<'_>| {
        let strategy = program.int_in_range(0..=31)?;
        let strategy = if strategy > 29 { program.arbitrary()? } else { 1 + strategy % 7 };
        let keep = [0, 1, 2, 5, u32::MAX, u32::MAX - 1][program.choose_index(6)?];
        Ok(Stage { strategy, keep })
    };
    (0..count).map(|_| stage(program)).collect()
}

/// A plan, and its result if there is one.
fn plan(machine: &mut Machine, program: &mut Unstructured<'_>) -> Result<Option<PlanResult>> {
    let (budget, stages, wrong) =
        (any_budget(machine, program)?, any_stages(program)?, words::wrong(program)?);
    let pass = if program.ratio(1, 32)? { program.arbitrary()? } else { program.int_in_range(1..=3)? };
    let checked = checked(&budget);
    let mut expected: Vec<_> = wrong.error().into_iter().collect();
    expected.extend(checked.as_ref().err());
    expected.extend(machine.stream.is_some().then_some(error::STREAMING));
    expected.extend((!(1..=3).contains(&pass)).then_some(error::VALUE));
    expected.extend((stages.is_empty() || stages.len() > STAGES_MAX).then_some(error::STAGES));
    let is_known = |stage: &Stage| {
        (1..=7).contains(&stage.strategy) && (stage.strategy != WINDOW_TURNS || stage.keep > 0)
    };
    expected.extend((!stages.iter().all(is_known)).then_some(error::VALUE));
    let mut result = Place::new();
    let error = machine.call(&expected, &[error::INFEASIBLE], |history| {
        let (stages, count, result) = (stages.as_ptr(), stages.len(), result.pointer(wrong, history));
        // SAFETY: a budget, so many stages, and a place for the output, or one of the errors above.
        unsafe { epitome_kernel_plan(history, &budget, pass, stages, count, result) }
    });
    let (Ok(budget), true) = (checked, [error::OK, error::INFEASIBLE].contains(&error)) else {
        assert!(result.is_untouched());
        return Ok(None);
    };
    let result: PlanResult = result.value();
    let tokens = machine.status().tokens;
    let reserve = if budget.reserve == NONE { 0 } else { budget.reserve };
    assert_eq!(result.limit, budget.window.saturating_sub(reserve));
    assert_eq!(result.outcome == INFEASIBLE, error == error::INFEASIBLE, "{result:?}");
    assert_eq!(result.floor > result.limit, result.outcome == INFEASIBLE, "{result:?}");
    match result.outcome {
        PLANNED => assert!(result.tokens_after < tokens, "{result:?}, {tokens}"),
        AT_GOAL => assert!(
            budget.goal != NONE && tokens <= budget.goal || result.tokens_after == tokens,
            "{result:?}"
        ),
        _ => assert!(
            (AT_GOAL..=INFEASIBLE).contains(&result.outcome) && result.tokens_after == tokens,
            "{result:?}"
        ),
    }
    Ok(Some(result))
}

/// Makes a plan and commits it, or puts a summary in the place of the messages that it would drop.
pub(super) fn compact(machine: &mut Machine, program: &mut Unstructured<'_>) -> Result<()> {
    let Some(result) = plan(machine, program)? else { return Ok(()) };
    if program.ratio(1, 4)? {
        return summarize_planned(machine, program, &result);
    }
    let note = if program.ratio(3, 4)? { b"[cleared]".to_vec() } else { words::text(program)? };
    let wrong = words::wrong(program)?;
    let has_note = program.ratio(7, 8)?;
    let text = if has_note { Text::of(&note) } else { Text::ABSENT };
    let mut expected: Vec<_> = wrong.error().into_iter().filter(|_| wrong != Wrong::Null).collect();
    expected.extend((has_note && core::str::from_utf8(&note).is_err()).then_some(error::UTF8));
    expected.extend((result.outcome != PLANNED).then_some(error::NO_PLAN));
    let (before, shown) = (machine.status(), machine.shown());
    let mut compacted = Place::new();
    let error = machine.call(&expected, &[error::NO_NOTE, error::BLANK, error::TOO_LARGE], |history| {
        // SAFETY: a text, and a place for the output, or one of the errors above.
        unsafe { epitome_kernel_compact(history, text, compacted.pointer(wrong, history)) }
    });
    if error != error::OK {
        assert!(compacted.is_untouched());
        assert!(error != error::NO_NOTE || !has_note);
        return Ok(());
    }
    let freed = (wrong == Wrong::No).then(|| compacted.value());
    is_compacted(machine, &result, &note, freed, &before, &shown);
    // A plan is good once.
    // SAFETY: no place for the output.
    let again = |history| unsafe { epitome_kernel_compact(history, text, core::ptr::null_mut()) };
    machine.call(&[error::NO_PLAN], &[], again);
    Ok(())
}

/// Checks that visible messages are unchanged, but for results that have the note. Protected messages stay; the sizes are those
/// of the plan.
fn is_compacted(
    machine: &mut Machine,
    result: &PlanResult,
    note: &[u8],
    freed: Option<Compacted>,
    before: &Status,
    shown: &[Shown],
) {
    let after = machine.status();
    let left: Vec<_> = machine.shown();
    let mut cleared = 0;
    for message in &left {
        let was = &machine.messages[&message.seq];
        if message != was {
            cleared += 1;
            assert!(
                message.is_cleared && !was.is_cleared && message.tokens < was.tokens,
                "{was:?}, {message:?}"
            );
            assert_eq!(message.parts[0].1.as_deref().map(str::as_bytes), Some(note));
            assert!(!machine.pinned.contains(&message.seq), "{was:?}");
        }
    }
    for seq in protected(machine, shown) {
        assert!(left.iter().any(|message| message.seq == seq), "{seq} is gone from {shown:#?}");
    }
    assert!(after.tokens <= result.tokens_after && after.tokens < before.tokens, "{after:?}, {result:?}");
    assert!(cleared > 0 || after.tokens == result.tokens_after, "{after:?}, {result:?}");
    if let Some(freed) = freed {
        assert_eq!(freed.tokens, before.tokens - after.tokens);
        assert_eq!(freed.bytes, after.free_bytes - before.free_bytes);
        assert_eq!((freed.messages, freed.results), (before.messages - after.messages, cleared));
    }
    machine.messages = left.into_iter().map(|message| (message.seq, message)).collect();
}

/// Instructions, pins, the first and the last request of the user, and the newest step.
fn protected(machine: &Machine, shown: &[Shown]) -> Vec<u64> {
    if machine.is_forged {
        return Vec::new();
    }
    // A message without a text asks for nothing.
    let lasts = |message: &&Shown| !message.is_summary && !message.parts.is_empty();
    let of_role = |role| {
        shown.iter().filter(lasts).filter(move |message| message.role == role).map(|message| message.seq)
    };
    let is_kept = |message: &&Shown| {
        [SYSTEM, DEVELOPER].contains(&message.role) || machine.pinned.contains(&message.seq)
    };
    let kept = shown.iter().filter(is_kept).map(|message| message.seq);
    kept.chain(of_role(USER).min()).chain(of_role(USER).max()).chain(of_role(ASSISTANT).max()).collect()
}

/// A summary of the messages that the plan would drop, if there are any.
fn summarize_planned(
    machine: &mut Machine,
    program: &mut Unstructured<'_>,
    result: &PlanResult,
) -> Result<()> {
    let wrong = words::wrong(program)?;
    let mut expected: Vec<_> = wrong.error().into_iter().collect();
    expected.extend((result.outcome != PLANNED).then_some(error::NO_MESSAGES));
    let mut span = Place::new();
    let error = machine.call(&expected, &[error::NO_MESSAGES], |history| {
        // SAFETY: a place for the output, or one of the errors above.
        unsafe { epitome_kernel_span_to_summarize(history, span.pointer(wrong, history)) }
    });
    if error != error::OK {
        assert!(span.is_untouched());
        return Ok(());
    }
    let text = match program.int_in_range(0..=3)? {
        0 => words::text(program)?,
        1 => ledger(machine, program, span.value())?.unwrap_or_default(),
        _ => b"So far: all is well.".to_vec(),
    };
    put_summary(machine, program, span.value(), &text, &[error::BLANK, error::TOO_LARGE])
}

/// The identifiers of the messages in a span, in a room of any size.
fn ledger(machine: &mut Machine, program: &mut Unstructured<'_>, span: Span) -> Result<Option<Vec<u8>>> {
    const UNTOUCHED: u8 = 0xA5;
    let wrong = words::wrong(program)?;
    let mut room = vec![UNTOUCHED; usize::from(program.arbitrary::<u16>()? % 600)];
    let expected: Vec<_> = wrong.error().into_iter().collect();
    let mut length = Place::new();
    let error = machine.call(&expected, &[error::NO_MESSAGES], |history| {
        let (to, capacity) = (room.as_mut_ptr().cast(), room.len());
        // SAFETY: a span, a buffer, and a place for the output, or one of the errors above.
        unsafe { epitome_kernel_ledger(history, &span, to, capacity, length.pointer(wrong, history)) }
    });
    if error != error::OK {
        assert!(length.is_untouched());
        return Ok(None);
    }
    let written: usize = length.value();
    let (text, rest) = room.split_at(written);
    assert!(rest.iter().all(|byte| *byte == UNTOUCHED), "it writes behind its text");
    let text = core::str::from_utf8(text).unwrap();
    let list = text.strip_prefix(LEDGER_OPENING).expect("the lines before a list");
    let words: Vec<_> = list.split(' ').skip(1).collect();
    assert!(!words.is_empty() && words.iter().all(|word| !word.is_empty()), "{text:?}");
    let is_shown_beside = |word: &&&str| {
        let mut beside = machine.shown().into_iter().filter(|it| !(span.first..=span.last).contains(&it.seq));
        beside.any(|message| {
            // The arguments of a call are searched without their escapes.
            let mut texts =
                message.parts.iter().filter_map(|part| part.1.as_deref()).filter(|text| !text.contains('\\'));
            texts.any(|text| stands_in(text, word))
        })
    };
    assert_eq!(words.iter().find(is_shown_beside), None, "{text:?}");
    Ok(Some(text.as_bytes().to_vec()))
}

/// Whether a word stands in a text, and not as a part of a longer one.
fn stands_in(text: &str, word: &str) -> bool {
    let is_border =
        |c: Option<char>| c.is_none_or(|c| c.is_ascii() && c != '_' && !c.is_ascii_alphanumeric());
    text.char_indices().map(|(at, _)| text.split_at(at)).any(|(before, rest)| {
        let behind = rest.strip_prefix(word);
        behind.is_some_and(|behind| is_border(before.chars().last()) && is_border(behind.chars().next()))
    })
}

/// A summary of any messages.
pub(super) fn summarize(machine: &mut Machine, program: &mut Unstructured<'_>) -> Result<()> {
    let first = words::size(program)?;
    let span = Span { first, last: first.saturating_add(words::size(program)?) };
    let text = if program.ratio(3, 4)? { b"Short.".to_vec() } else { words::text(program)? };
    let refusals = [error::NO_MESSAGES, error::NOT_WHOLE, error::PROTECTED, error::NOTHING_NEW];
    put_summary(
        machine,
        program,
        span,
        &text,
        &[refusals.as_slice(), &[error::BLANK, error::TOO_LARGE]].concat(),
    )
}

fn put_summary(
    machine: &mut Machine,
    program: &mut Unstructured<'_>,
    span: Span,
    text: &[u8],
    allowed: &[i32],
) -> Result<()> {
    let wrong = words::wrong(program)?;
    let mut expected: Vec<_> = wrong.error().into_iter().filter(|_| wrong != Wrong::Null).collect();
    expected.extend(core::str::from_utf8(text).is_err().then_some(error::UTF8));
    expected.extend(machine.stream.is_some().then_some(error::STREAMING));
    let (before, shown) = (machine.status(), machine.shown());
    let mut compacted = Place::new();
    let error = machine.call(&expected, allowed, |history| {
        // SAFETY: a text, and a place for the output, or one of the errors above.
        unsafe { epitome_kernel_summarize(history, &span, Text::of(text), compacted.pointer(wrong, history)) }
    });
    if error != error::OK {
        assert!(compacted.is_untouched());
        return Ok(());
    }
    let (after, left) = (machine.status(), machine.shown());
    assert!(after.tokens < before.tokens, "{after:?}, {before:?}");
    let summary =
        left.iter().find(|message| machine.messages.get(&message.seq) != Some(message)).expect("a summary");
    assert!(summary.is_summary && (span.first..=span.last).contains(&summary.seq), "{span:?}, {summary:?}");
    assert_eq!(summary.parts, [(1, Some(String::from_utf8(text.to_vec()).unwrap()), None, None, 0)]);
    for message in left.iter().filter(|message| message.seq != summary.seq) {
        assert_eq!(machine.messages.get(&message.seq), Some(message));
    }
    for seq in protected(machine, &shown) {
        assert!(left.iter().any(|message| message.seq == seq), "{seq} is gone from {shown:#?}");
    }
    if wrong == Wrong::No {
        let freed: Compacted = compacted.value();
        assert_eq!(freed.tokens, before.tokens - after.tokens);
        assert_eq!((freed.messages, freed.results), (before.messages - after.messages, 0));
    }
    machine.messages = left.into_iter().map(|message| (message.seq, message)).collect();
    Ok(())
}
