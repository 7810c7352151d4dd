//! Edits of visible messages: the stand-ins of their parts.

use epitome_core::{PartKind, PlannedEdit, ReadyPlan, Seq};
use epitome_message::{Message, Part, Str, ToolResult};

use super::{Entry, Live, TokenCount};

/// The edit of a visible message by a compaction: some of its parts are shortened. The log keeps the appended message.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct MessageEdit {
    /// The sequence number of the message. It is a message of the log, never a summary.
    pub seq: Seq,
    /// The stand-ins of its parts after this edit, by ascending ordinals. Parts without a stand-in here keep the
    /// stand-in of an earlier record.
    pub stand_ins: Vec<PartStandIn>,
    /// The size of the message after this edit.
    pub count: TokenCount,
}

impl MessageEdit {
    /// Makes an edit that puts these stand-ins into the message `seq`. `count` is the new size of the message.
    #[must_use]
    pub const fn new(seq: Seq, stand_ins: Vec<PartStandIn>, count: TokenCount) -> Self {
        Self { seq, stand_ins, count }
    }
}

/// The stand-in of one part.
///
/// For a text of the model or of a tool, a store accepts any text as stand-in. For a text of a user, or an instruction,
/// it accepts two forms: an excerpt, which is the beginning and the end of the text around one word in brackets of at
/// most 24 bytes, or such a word alone.
///
/// ```
/// use epitome_history::PartStandIn;
/// use epitome_message::{Message, Part};
///
/// let said = Message::tool("c1", "line after line after line");
/// let short = PartStandIn::apply(&[PartStandIn::new(0, Some("[cleared]".into()))], &said);
/// assert!(matches!(&short.parts()[0], Part::ToolResult(result) if result.parts == [Part::Text("[cleared]".into())]));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartStandIn {
    /// The position of the part among all parts of the appended message, from 0.
    pub ordinal: u32,
    /// The text of the stand-in. It replaces all content of a tool result, the arguments of a call, a media part, or a
    /// longer text. `None` removes the part; only reasoning may be removed.
    pub text: Option<Str>,
}

impl PartStandIn {
    /// Makes a stand-in with `text` for the part at `ordinal`.
    #[must_use]
    pub const fn new(ordinal: u32, text: Option<Str>) -> Self {
        Self { ordinal, text }
    }

    /// Returns the appended `message` with these stand-ins in the place of its parts.
    #[must_use]
    pub fn apply(stand_ins: &[Self], message: &Message) -> Message {
        if stand_ins.is_empty() {
            return message.clone();
        }
        let parts = (0_u32..).zip(message.parts()).filter_map(|(ordinal, part)| {
            match stand_ins.binary_search_by_key(&ordinal, |stand_in| stand_in.ordinal) {
                Ok(at) => stand_ins.get(at).and_then(|stand_in| stand_in.in_place_of(part)),
                Err(_) => Some(part.clone()),
            }
        });
        message.clone().with_parts(parts.collect())
    }

    fn in_place_of(&self, part: &Part) -> Option<Part> {
        let text = self.text.clone()?;
        Some(match part {
            Part::ToolResult(ToolResult { call_id, is_error, .. }) => {
                let mut result = ToolResult::new(call_id.clone(), vec![Part::Text(text)]);
                result.is_error = *is_error;
                Part::ToolResult(result)
            }
            Part::ToolCall(call) => {
                let mut call = call.clone();
                call.arguments = text;
                Part::ToolCall(call)
            }
            _ => Part::Text(text),
        })
    }
}

/// The messages that a plan shortens, by their positions, with the stand-ins of their parts. The ordinals are those of
/// the messages from which the plan was made.
#[must_use]
pub fn shortened_messages(ready: &ReadyPlan<'_, '_>) -> Vec<(u32, Vec<PartStandIn>)> {
    let mut messages: Vec<(u32, Vec<PartStandIn>)> = Vec::new();
    for edit in ready.edits() {
        let PlannedEdit::Part(part) = edit else { continue };
        // Reasoning is always removed, even if the plan was filled with a text for it.
        let text = part.stand_in.filter(|_| part.kind != PartKind::Reasoning);
        let stand_in = PartStandIn::new(part.ordinal, text.map(|stand_in| Str::from(stand_in.text)));
        match messages.last_mut().filter(|(position, _)| *position == part.position) {
            Some((_, stand_ins)) => stand_ins.push(stand_in),
            None => messages.push((part.position, vec![stand_in])),
        }
    }
    messages
}

impl Live {
    /// Returns this message with the stand-ins of `copy`. The copy was made from the visible form of the message, so
    /// its ordinals count the visible parts.
    #[doc(hidden)]
    pub fn shortened_as(&self, copy: &Self) -> Self {
        let newer: Vec<_> = copy
            .stand_ins
            .iter()
            .map(|it| PartStandIn::new(original_ordinal(&self.stand_ins, it.ordinal), it.text.clone()))
            .collect();
        let Entry { message, count, part_tokens, .. } = copy.entry.clone();
        let mut shortened = self.clone();
        shortened.stand_ins = merged(&self.stand_ins, &newer);
        shortened.entry = Entry { message, count, part_tokens, ..shortened.entry };
        shortened
    }
}

/// Merges the stand-ins of a message: `newer` over `older`. If both have a stand-in for one part, the newer one stays.
/// The inputs and the result are ordered by ordinal.
pub(super) fn merged(older: &[PartStandIn], newer: &[PartStandIn]) -> Vec<PartStandIn> {
    let is_new = |stand_in: &&PartStandIn| {
        newer.binary_search_by_key(&stand_in.ordinal, |newer| newer.ordinal).is_ok()
    };
    let mut all: Vec<_> = older.iter().filter(|older| !is_new(older)).chain(newer).cloned().collect();
    all.sort_by_key(|stand_in| stand_in.ordinal);
    all
}

/// The ordinal, in the appended message, of the part at position `shown` of the message that `stand_ins` have
/// shortened.
pub(super) fn original_ordinal(stand_ins: &[PartStandIn], shown: u32) -> u32 {
    let removed = stand_ins.iter().filter(|stand_in| stand_in.text.is_none());
    removed.fold(
        shown,
        |ordinal, removed| {
            if removed.ordinal <= ordinal { ordinal.saturating_add(1) } else { ordinal }
        },
    )
}

#[cfg(test)]
mod tests {
    use epitome_core::message::Role;
    use epitome_message::{Reasoning, ToolCall};
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;

    use super::*;

    fn part() -> impl Strategy<Value = Part> {
        prop_oneof![
            "[a-z]{1,9}".prop_map(|text| Part::Text(text.into())),
            "[a-z]{1,9}".prop_map(|text| Part::Reasoning(Reasoning::new(text))),
            "[a-z]{1,9}".prop_map(|text| Part::ToolCall(ToolCall::new("c", "read", text))),
        ]
    }

    proptest! {
        #[test]
        fn a_part_is_found_again_behind_those_that_were_taken_out(
            parts in vec(part(), 1..9),
            touched in btree_map(0_u32..9, any::<bool>(), 0..5),
        ) {
            // Each part names its original position.
            let parts: Vec<_> = parts.into_iter().enumerate().map(|(at, part)| match part {
                Part::Reasoning(_) => Part::Reasoning(Reasoning::new(format!("{at}"))),
                Part::ToolCall(_) => Part::ToolCall(ToolCall::new("c", "read", format!("{at}"))),
                _ => Part::Text(format!("{at}").into()),
            }).collect();
            let removed = |at: &u32| matches!(parts.get(*at as usize), Some(Part::Reasoning(_)));
            let stand_ins: Vec<_> = touched
                .keys()
                .filter(|at| (**at as usize) < parts.len())
                .map(|at| PartStandIn::new(*at, (!removed(at)).then(|| format!("{at}").into())))
                .collect();
            let shown = PartStandIn::apply(&stand_ins, &Message::new(Role::Assistant, parts));
            for (at, part) in shown.parts().iter().enumerate() {
                let said = match part {
                    Part::Text(text) => text.as_str(),
                    Part::Reasoning(reasoning) => &reasoning.text,
                    Part::ToolCall(call) => &call.arguments,
                    _ => unreachable!("no other part was made"),
                };
                let original = original_ordinal(&stand_ins, u32::try_from(at).unwrap());
                prop_assert_eq!(said, original.to_string());
            }
        }

        #[test]
        fn of_two_stand_ins_for_a_part_the_newer_is_left(
            older in btree_map(0_u32..6, any::<bool>(), 0..5),
            newer in btree_map(0_u32..6, any::<bool>(), 0..5),
        ) {
            let list = |ordinals: &std::collections::BTreeMap<u32, bool>, text: &str| -> Vec<_> {
                ordinals.keys().map(|at| PartStandIn::new(*at, Some(text.into()))).collect()
            };
            let all = merged(&list(&older, "old"), &list(&newer, "new"));
            let expected: Vec<_> = (0..6)
                .filter_map(|at| match (older.contains_key(&at), newer.contains_key(&at)) {
                    (_, true) => Some(PartStandIn::new(at, Some("new".into()))),
                    (true, false) => Some(PartStandIn::new(at, Some("old".into()))),
                    (false, false) => None,
                })
                .collect();
            prop_assert_eq!(all, expected);
        }
    }
}
