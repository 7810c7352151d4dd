//! Counts of a message and its parts in one pass.

use epitome_core::message::{MessageView, PartView};
use epitome_core::{Amount, TEXT_PART_TOKENS_MIN, TokenCounter, Tokens, measure_part};

/// The size of a message, as [`measure_message`](epitome_core::measure_message), and the size of each of its parts,
/// in order. The size of a call is that of its arguments, the only part of it that can be shortened. Each text is
/// counted once.
///
/// The list is empty if no part of the message can be shortened.
///
/// ```
/// use epitome_core::{ClassEstimator, measure_message};
/// use epitome_message::Message;
/// use epitome_message::tokens::measure_with_parts;
///
/// let result = Message::tool("c1", "one line\nand another");
/// let (amount, parts) = measure_with_parts(&result, &ClassEstimator::new());
/// assert_eq!(amount, measure_message(&result, &ClassEstimator::new()));
/// assert!(parts.len() == 1 && parts[0] < amount.tokens);
/// assert!(measure_with_parts(&Message::user("Hello"), &ClassEstimator::new()).1.is_empty());
/// ```
pub fn measure_with_parts<M: MessageView + ?Sized>(
    message: &M,
    counter: &(impl TokenCounter + ?Sized),
) -> (Amount, Vec<Tokens>) {
    let framing = counter.framing();
    let (mut tokens, mut basis) = (Tokens(framing.message), framing.basis.min(counter.basis()));
    let mut add = |more: Tokens| tokens = tokens.saturating_add(more);
    if let Some(name) = message.name() {
        let name = counter.measure(name);
        basis = basis.min(name.basis);
        add(name.tokens);
        add(Tokens(framing.name));
    }
    let (mut parts, mut can_be_shortened) = (Vec::new(), false);
    message.for_each_part(&mut |part| {
        can_be_shortened |= may_have_row(&part);
        let own = match part {
            PartView::ToolCall(call) => {
                let (name, arguments) = (counter.measure(call.name), counter.measure(call.arguments));
                basis = basis.min(name.basis).min(arguments.basis);
                add(name.tokens);
                add(Tokens(framing.call));
                arguments.tokens
            }
            part => {
                let own = measure_part(part, counter);
                basis = basis.min(own.basis);
                own.tokens
            }
        };
        add(own);
        parts.push(own);
    });
    if !can_be_shortened {
        parts.clear();
    }
    (Amount::new(tokens, basis), parts)
}

/// Whether any part of a message can be shortened. These are the parts with a row in an index.
pub fn can_be_shortened<M: MessageView + ?Sized>(message: &M) -> bool {
    let mut found = false;
    message.for_each_part(&mut |part| found |= may_have_row(&part));
    found
}

const fn may_have_row(part: &PartView<'_>) -> bool {
    match part {
        PartView::ToolResult(_) | PartView::ToolCall(_) | PartView::Reasoning(_) | PartView::Media(_) => true,
        PartView::Text(text) => text.len() >= TEXT_PART_TOKENS_MIN.0 as usize,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use epitome_core::message::{MediaKind, Role};
    use epitome_core::{ClassEstimator, measure_message};
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::message::{Media, MediaSource, Message, Part, Reasoning, ToolCall, ToolResult};

    fn part() -> impl Strategy<Value = Part> {
        let text = || "[a-z0-9 日{}\"]{0,40}";
        prop_oneof![
            text().prop_map(|text| Part::Text(text.repeat(20).into())),
            text().prop_map(|text| Part::Text(text.into())),
            text().prop_map(|text| Part::Reasoning(Reasoning::new(text))),
            (text(), text()).prop_map(|(name, input)| Part::ToolCall(ToolCall::new("c", name, input))),
            text().prop_map(|text| Part::ToolResult(ToolResult::new("c", vec![Part::Text(text.into())]))),
            Just(Part::Media(Media::new(MediaKind::Image, "image/png", MediaSource::Uri("u".into())))),
        ]
    }

    proptest! {
        #[test]
        fn a_message_counts_as_much_as_without_its_parts_apart(
            parts in vec(part(), 0..6), name in proptest::option::of("[a-z]{1,9}"),
        ) {
            let counter = ClassEstimator::new();
            let message = Message::new(Role::Assistant, parts);
            let message = match name { Some(name) => message.with_name(name), None => message };
            let (amount, sizes) = measure_with_parts(&message, &counter);
            prop_assert_eq!(amount, measure_message(&message, &counter));
            prop_assert_eq!(sizes.is_empty(), !can_be_shortened(&message));
            for (part, size) in message.parts().iter().zip(sizes) {
                let expected = match part {
                    Part::ToolCall(call) => counter.count(&call.arguments),
                    Part::Text(text) => counter.count(text),
                    Part::Reasoning(reasoning) => counter.count(&reasoning.text),
                    Part::ToolResult(result) => match result.parts.as_slice() {
                        [Part::Text(text)] => counter.count(text),
                        _ => unreachable!("no other result was made"),
                    },
                    _ => Tokens(765),
                };
                prop_assert_eq!(size, expected);
            }
        }
    }
}
