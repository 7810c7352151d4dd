//! The size of a message: the sum of its parts, and its framing.

mod framing;
mod media;

pub use framing::{Framing, ToolFraming};
pub use media::{ImageRule, MediaRules, Rate};

use crate::message::{CompactionView, MediaView, MessageView, PartView, Parts};
use crate::{Basis, TokenCounter, Tokens};

/// Tokens that frame a message in Chat Completions: see [`Framing::OPENAI`].
pub const MESSAGE_TOKENS: u32 = Framing::OPENAI.message;
/// Tokens of a speaker's name beside its text.
pub const NAME_TOKENS: u32 = Framing::OPENAI.name;
/// Tokens that frame a call.
pub const CALL_TOKENS: u32 = Framing::OPENAI.call;

/// An amount of tokens, and how it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Amount {
    /// How many.
    pub tokens: Tokens,
    /// The least certain of what it is the sum of.
    pub basis: Basis,
}

impl Amount {
    /// So many tokens, known so.
    #[must_use]
    pub const fn new(tokens: Tokens, basis: Basis) -> Self {
        Self { tokens, basis }
    }

    fn add(&mut self, other: Self) {
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.basis = self.basis.min(other.basis);
    }
}

/// The size of a message: the sum of its parts and its framing.
///
/// The framing is the counter's [`framing`](TokenCounter::framing). Ids count nothing, because models do not see them.
/// Signed or encrypted reasoning counts by its readable text, a provider's compaction by that or by the tokens of its payload,
/// reported or else estimated from its length, whichever is more; media by the counter's
/// [`media_rules`](TokenCounter::media_rules): never by the length of their base64.
///
/// ```
/// use epitome_core::{ClassEstimator, count_message};
/// use epitome_core::message::SimpleMessage;
///
/// let short = count_message(&SimpleMessage::user("Hello"), &ClassEstimator::new());
/// let long = count_message(&SimpleMessage::user("Hello, what can you tell me about llamas?"), &ClassEstimator::new());
/// assert!(short < long);
/// ```
pub fn count_message<M: MessageView + ?Sized>(message: &M, counter: &(impl TokenCounter + ?Sized)) -> Tokens {
    measure_message(message, counter).tokens
}

/// [`count_message`], with how the size is known: an exact counter only estimates what it has no published formula for,
/// such as an image of unknown extent, or a message for a provider that does not publish its framing.
pub fn measure_message<M: MessageView + ?Sized>(
    message: &M,
    counter: &(impl TokenCounter + ?Sized),
) -> Amount {
    measure_each(message, counter, &mut |_, _| {})
}

/// [`measure_message`], showing each part with its size: that of [`count_part`]. No text is counted twice.
///
/// ```
/// use epitome_core::message::SimpleMessage;
/// use epitome_core::{ClassEstimator, Tokens, measure_each, measure_message};
///
/// let (message, counter) = (SimpleMessage::user("Hello"), ClassEstimator::new());
/// let mut parts = Tokens::ZERO;
/// let amount = measure_each(&message, &counter, &mut |_, size| parts = parts.saturating_add(size));
/// assert_eq!(amount, measure_message(&message, &counter));
/// assert!(parts < amount.tokens);
/// ```
pub fn measure_each<M: MessageView + ?Sized>(
    message: &M,
    counter: &(impl TokenCounter + ?Sized),
    visit: &mut dyn FnMut(PartView<'_>, Tokens),
) -> Amount {
    let framing = counter.framing();
    let mut amount = Amount::new(Tokens(framing.message), framing.basis.min(counter.basis()));
    if let Some(name) = message.name() {
        amount.add(counter.measure(name));
        amount.tokens = amount.tokens.saturating_add(Tokens(framing.name));
    }
    message.for_each_part(&mut |part| {
        let size = measure_part(part, counter);
        visit(part, size.tokens);
        amount.add(size);
    });
    amount
}

/// The size of some parts, without a message's framing.
pub fn count_parts<P: Parts + ?Sized>(parts: &P, counter: &(impl TokenCounter + ?Sized)) -> Tokens {
    let mut tokens = Tokens::ZERO;
    parts.for_each_part(&mut |part| tokens = tokens.saturating_add(count_part(part, counter)));
    tokens
}

/// The size of one part, without a message's framing.
pub fn count_part(part: PartView<'_>, counter: &(impl TokenCounter + ?Sized)) -> Tokens {
    measure_part(part, counter).tokens
}

/// [`count_part`], with how the size is known.
pub fn measure_part(part: PartView<'_>, counter: &(impl TokenCounter + ?Sized)) -> Amount {
    match part {
        PartView::Text(said) => counter.measure(said),
        PartView::Reasoning(reasoning) => counter.measure(reasoning.text),
        PartView::ToolCall(call) => {
            let mut amount = counter.measure(call.name);
            amount.add(counter.measure(call.arguments));
            amount.tokens = amount.tokens.saturating_add(Tokens(counter.framing().call));
            amount
        }
        // Results nest one level: what stands inside is text and media.
        PartView::ToolResult(result) => measure_flat(result.content, counter),
        PartView::Compaction(compaction) => measure_compaction(compaction, counter),
        PartView::Unknown(unknown) => measure_raw(unknown.raw, counter),
        PartView::Media(media) => counter.media_rules().measure(media),
        PartView::ApprovalRequest(_) | PartView::ApprovalResponse(_) => {
            Amount::new(Tokens::ZERO, counter.basis())
        }
    }
}

/// An image of unknown size, by [`MediaRules::OPENAI`]: written out, because the rules take room on a small device.
const IMAGE: Amount = Amount::new(Tokens(765), Basis::Estimated);

/// A source text: what stands in it as base64 counts as an image, never by its length, and all else as text.
fn measure_raw(raw: &str, counter: &(impl TokenCounter + ?Sized)) -> Amount {
    let (mut amount, mut rest) = (Amount::new(Tokens::ZERO, counter.basis()), raw);
    while let Some((text, behind)) = around_base64(rest) {
        amount.add(counter.measure(text));
        amount.add(IMAGE);
        rest = behind;
    }
    amount.add(counter.measure(rest));
    amount
}

/// What stands before and behind the first payload of a `data:` URL with base64, which ends where no character of base64 does.
/// Byte by byte: `str::find` takes more of a small device than all else that counts.
fn around_base64(raw: &str) -> Option<(&str, &str)> {
    const MARK: &[u8; 8] = b";base64,";
    let mark = raw.as_bytes().windows(MARK.len()).position(|window| window == MARK)?;
    let (text, mut payload) = raw.split_at_checked(mark)?;
    while payload.as_bytes().first().is_some_and(|byte| (b'+'..=b'z').contains(byte)) {
        payload = payload.get(1..)?;
    }
    Some((text, payload))
}

/// The larger of what its provider reads and what others do: who will read it is not known here. Of a payload that nobody else
/// can read, what the provider has reported is its size, and otherwise an estimate.
fn measure_compaction(compaction: CompactionView<'_>, counter: &(impl TokenCounter + ?Sized)) -> Amount {
    let text = counter.measure(compaction.text);
    let sealed = compaction.tokens.or(compaction.opaque.map(sealed_tokens)).unwrap_or_default();
    if sealed > text.tokens { Amount::new(sealed, Basis::Estimated) } else { text }
}

/// An encrypted payload, of which only the length can be seen: base64 of the text and an envelope of 650 bytes, four bytes a
/// token. Source: Codex (`estimate_reasoning_length`), which takes encrypted reasoning and compactions for that.
fn sealed_tokens(opaque: &str) -> Tokens {
    const ENVELOPE_BYTES: usize = 650;
    const TOKEN_BYTES: usize = 4;
    // Four characters of base64 are three bytes.
    let bytes_4 = opaque.len().saturating_mul(3).saturating_sub(4 * ENVELOPE_BYTES);
    Tokens(u32::try_from(bytes_4.div_ceil(4 * TOKEN_BYTES)).unwrap_or(u32::MAX))
}

/// The size of a result's content. A result inside a result counts nothing: no wire format has one.
fn measure_flat(content: &dyn Parts, counter: &(impl TokenCounter + ?Sized)) -> Amount {
    let mut amount = Amount::new(Tokens::ZERO, counter.basis());
    content.for_each_part(&mut |part| {
        if !matches!(part, PartView::ToolResult(_)) {
            amount.add(measure_part(part, counter));
        }
    });
    amount
}

/// The size of a media part, by [`MediaRules::OPENAI`].
#[must_use]
pub fn media_tokens(media: MediaView<'_>) -> Tokens {
    MediaRules::OPENAI.measure(media).tokens
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ClassEstimator;
    use crate::message::{MediaKind, SimpleMessage, UnknownView};

    /// Counts bytes, exactly, for a provider of its own.
    struct Bytes;

    impl TokenCounter for Bytes {
        fn name(&self) -> &str {
            "bytes"
        }

        fn basis(&self) -> Basis {
            Basis::Counted
        }

        fn count(&self, text: &str) -> Tokens {
            Tokens(text.len() as u32)
        }

        fn framing(&self) -> Framing {
            Framing { message: 100, name: 10, call: 1, ..Framing::OPENAI }
        }

        fn media_rules(&self) -> MediaRules {
            MediaRules::ANTHROPIC
        }
    }

    #[test]
    fn a_sealed_compaction_counts_as_reported_or_else_by_its_length() {
        let sealed = std::string::String::from("g").repeat(4_000);
        let view = |text, opaque| CompactionView::new("p", text, opaque);
        let size = |view| measure_part(PartView::Compaction(view), &Bytes);
        // 3,000 bytes less the envelope.
        assert_eq!(size(view("", Some(&sealed))), Amount::new(Tokens(588), Basis::Estimated));
        assert_eq!(size(view("", Some("short"))), Amount::new(Tokens::ZERO, Basis::Counted));
        let told = view("", Some(&sealed)).with_tokens(Some(Tokens(70)));
        assert_eq!(size(told), Amount::new(Tokens(70), Basis::Estimated));
        // Others read the text.
        assert_eq!(size(view("readable", None)), Amount::new(Tokens(8), Basis::Counted));
        let both = view("readable", Some(&sealed)).with_tokens(Some(Tokens(7)));
        assert_eq!(size(both), Amount::new(Tokens(8), Basis::Counted));
        assert_eq!(size(view("readable", Some(&sealed))), Amount::new(Tokens(588), Basis::Estimated));
    }

    #[test]
    fn media_in_a_source_text_count_as_media() {
        let size = |raw: &str| {
            let view = PartView::Unknown(UnknownView::new("f", "message", raw));
            measure_part(view, &Bytes).tokens.0
        };
        let image = |payload: &str| std::format!("12data:image/png;base64,{payload}\"45");
        // All else is text: `12data:image/png`, and what stands behind.
        let whole = 16 + IMAGE.tokens.0 + 3;
        assert_eq!(size(&image("iVBORw0KGgo=")), whole);
        assert_eq!(size(&image(&"iV\\/".repeat(50_000))), whole);
        assert_eq!(size(&std::format!("{}{}é", image("aa"), image("bb"))), 2 * whole + 2);
        assert_eq!(size("data:image/png;base64,aaaa"), 14 + IMAGE.tokens.0, "nothing is behind");
        assert_eq!(size("data:image/png;base64,aaaaé"), 14 + IMAGE.tokens.0 + 2);
        for text in ["", "12345", "\"éé\"", "data:image/png;base64"] {
            assert_eq!(size(text), text.len() as u32, "no URL: {text}");
        }
        assert_eq!(IMAGE.tokens, media_tokens(MediaView::new(MediaKind::Image, "")));
    }

    #[test]
    fn a_counter_brings_the_framing_and_the_rules_of_its_provider() {
        let message = SimpleMessage::user("12345");
        assert_eq!(measure_message(&message, &Bytes), Amount::new(Tokens(105), Basis::Counted));
        assert_eq!(count_message(&message, &&Bytes), Tokens(105));
        assert_eq!(measure_message(&message, &ClassEstimator::new()).basis, Basis::Estimated);
        let image = PartView::Media(MediaView::new(MediaKind::Image, "image/png"));
        assert_eq!(measure_part(image, &Bytes), Amount::new(Tokens(37 * 37), Basis::Estimated));
    }
}
