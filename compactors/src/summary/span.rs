//! Content of a summary's span, and the requests and answers of a conversation.

use std::collections::BTreeSet;
use std::vec::Vec;

use epitome_core::attribution::SourceKind;
use epitome_core::message::Role;
use epitome_core::{GroupKind, SummaryGap, TokenCounter, Verdict};
use epitome_std::history::{History, clamped_text, part_text};
use epitome_std::message::{Message, Part};

use super::handle::{Numbers, joined};
use super::quotes::Quotes;
use super::{Earlier, Identifiers};

/// The content of a ledger.
pub(super) struct Gone {
    /// The earlier summary in its span.
    pub(super) earlier: Earlier,
    pub(super) identifiers: Identifiers,
    /// The range of numbers by which the model can read the wholly hidden messages; `None` if it cannot read by
    /// number, or if no message is wholly hidden.
    pub(super) numbers: Option<Numbers>,
}

/// The content that a plan hides and that stays visible nowhere. `history` is the history of the plan, if it has
/// one.
pub(super) fn gone(
    gap: &SummaryGap<'_>,
    messages: &[&Message],
    history: Option<&History>,
    counter: &dyn TokenCounter,
) -> Gone {
    let plan = gap.plan();
    let within: BTreeSet<u32> = gap.covers().flatten().collect();
    let mut gone = Gone { earlier: Earlier::default(), identifiers: Identifiers::of_code(), numbers: None };
    let (mut hidden, mut shown, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
    for group in plan.index().groups().filter(|group| group.kind() != GroupKind::Orphan) {
        let goes = plan.verdict(&group) != Verdict::Keep;
        for at in group.positions().flatten() {
            let Some(message) = messages.get(at as usize).copied() else { continue };
            if goes {
                numbers.extend(numbers_of(history, [at]));
            }
            if !goes {
                shown.push((at, message));
            } else if message.attribution().source == SourceKind::Compaction {
                let mut earlier = Earlier::of(message);
                gone.identifiers = gone.identifiers.with(core::mem::take(&mut earlier.identifiers));
                numbers.extend(earlier.numbers);
                if within.contains(&at) && gone.earlier.prose.is_empty() {
                    gone.earlier = earlier;
                }
            } else {
                hidden.push(message);
            }
        }
    }
    gone.identifiers.look_through(hidden.into_iter());
    let mut shortened = BTreeSet::new();
    for (part, _) in plan.shortened() {
        shortened.insert((part.position(), part.ordinal()));
        if let Some(message) = messages.get(part.position() as usize) {
            gone.identifiers.look_through_part(message, part.ordinal() as usize);
        }
    }
    for (at, message) in shown {
        let whole = (0..).zip(message.parts()).filter(|(ordinal, _)| !shortened.contains(&(at, *ordinal)));
        gone.identifiers.leave_out(whole.map(|(_, part)| part));
    }
    for gap in plan.clamps() {
        let in_history = history.and_then(|history| history.clamped_text(&gap.part, gap.clamp));
        let cut = || {
            let message = messages.get(gap.part.position() as usize);
            let text = message.and_then(|message| part_text(*message, gap.part.ordinal()));
            clamped_text(&text.unwrap_or_default(), gap.part.kind(), gap.clamp, counter)
        };
        let (left, _) = in_history.unwrap_or_else(cut);
        gone.identifiers.leave_out_text(&left);
    }
    gone.numbers = joined(numbers);
    gone
}

/// The range of numbers by which the model can read the messages at these positions; `None` if it cannot read by
/// number.
fn numbers_of(history: Option<&History>, positions: impl IntoIterator<Item = u32>) -> Option<Numbers> {
    history?.handle_of(positions).map(|range| (range.first.0, range.last.0))
}

/// The visible content of the span of a gap.
pub(super) fn covered<'m>(
    gap: &SummaryGap<'_>,
    messages: &[&'m Message],
    late: &'m [Vec<Message>],
    history: Option<&History>,
) -> Covered<'m> {
    let (mut covered, mut looked_at) = (Covered::default(), Vec::new());
    let mut numbers = Vec::from_iter(numbers_of(history, gap.covers().flatten()));
    for group in gap.groups() {
        let mut own = Vec::new();
        for message in group.positions().flatten().filter_map(|at| messages.get(at as usize).copied()) {
            // The attribution identifies a summary, because the span of a run may not be stored yet.
            if message.attribution().source == SourceKind::Compaction {
                let earlier = Earlier::of(message);
                covered.identifiers = covered.identifiers.with(earlier.identifiers.clone());
                covered.quotes.append(earlier.quotes.clone());
                // A ledger also covers messages outside its own range.
                numbers.extend(earlier.numbers);
                // Only a summary at the beginning of the span continues as the earlier one.
                if own.is_empty() && covered.groups.is_empty() && covered.earlier.prose.is_empty() {
                    covered.earlier = earlier;
                    continue;
                }
            } else {
                if asks(message) {
                    covered.quotes.add(message);
                }
                looked_at.push(message);
            }
            own.push(message);
        }
        if !own.is_empty() {
            covered.groups.push(own);
        }
    }
    // The late answers come directly after the earlier summary, which they continue.
    looked_at.extend(late.iter().flatten());
    covered.groups.splice(0..0, late.iter().map(|exchange| exchange.iter().collect()));
    covered.identifiers.look_through(looked_at.into_iter());
    covered.numbers = joined(numbers);
    covered
}

/// Whether the last request of a user in the span was answered, in the span or behind it; without a request, the
/// value `before`. The state is read from the log, because models treat an old request as an open one.
pub(super) fn is_answered(gap: &SummaryGap<'_>, messages: &[&Message], before: Option<bool>) -> Option<bool> {
    let within: BTreeSet<u32> = gap.covers().flatten().collect();
    let asks_at = |position: &u32| messages.get(*position as usize).is_some_and(|message| asks(message));
    let asked = within.iter().copied().rfind(asks_at);
    let begin = match (asked, before) {
        (Some(asked), _) => asked.saturating_add(1),
        (None, Some(false)) => within.first().copied()?,
        (None, known) => return known,
    };
    let later = messages.get(begin as usize..).unwrap_or_default();
    let until = later.iter().take_while(|message| !asks(message));
    // Only the last message of the model counts: text before a further call is no answer.
    let speaks = |message: &&&Message| message.role() == Role::Assistant && !is_added(message);
    Some(until.filter(speaks).last().is_some_and(|message| answers(message)))
}

/// The visible content of a span.
#[derive(Default)]
pub(super) struct Covered<'a> {
    /// The summary at the beginning of the span, if there is one.
    pub(super) earlier: Earlier,
    /// Quotes of users in the span. The quotes of the earlier summary come first.
    pub(super) quotes: Quotes,
    /// Identifiers of the summaries and the messages in the span.
    pub(super) identifiers: Identifiers,
    /// The other messages in the span, by group.
    pub(super) groups: Vec<Vec<&'a Message>>,
    /// The range of numbers by which the model can read the whole span; `None` if it cannot read by number.
    pub(super) numbers: Option<Numbers>,
}

/// Whether a component added the message, so that it is no utterance of a participant.
pub(super) fn is_added(message: &Message) -> bool {
    matches!(message.attribution().source, SourceKind::Context | SourceKind::Tool | SourceKind::Compaction)
}

/// Whether a message is a request of a user.
pub(super) fn asks(message: &Message) -> bool {
    message.role() == Role::User && !is_added(message) && !message.parts().iter().all(is_result)
}

pub(super) const fn is_result(part: &Part) -> bool {
    matches!(part, Part::ToolResult(_))
}

/// Whether a message of the model has text and no calls.
pub(super) fn answers(message: &Message) -> bool {
    let calls = message.parts().iter().any(|part| matches!(part, Part::ToolCall(_)));
    let says = message.parts().iter().any(|part| matches!(part, Part::Text(text) if !text.trim().is_empty()));
    says && !calls
}
