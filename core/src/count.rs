//! The size of a message: the sum of its parts, and its framing.

use crate::message::{MediaKind, MediaView, MessageView, PartView, Parts};
use crate::{TokenCounter, Tokens};

/// Tokens that frame a message, in the published recipe for Chat Completions (`OpenAI` Cookbook, "How to count tokens
/// with tiktoken").
pub const MESSAGE_TOKENS: u32 = 3;
/// Tokens of a speaker's name beside its text, by the same recipe.
pub const NAME_TOKENS: u32 = 1;
/// Tokens that frame a call. The recipe is silent on calls; a call is framed like a message here.
pub const CALL_TOKENS: u32 = 3;

/// The size of a message: the sum of its parts and its framing.
///
/// The framing is [`MESSAGE_TOKENS`], [`NAME_TOKENS`] and [`CALL_TOKENS`]. Ids count nothing, because models do not see
/// them. Signed or encrypted reasoning counts by its readable text, and media by [`media_tokens`]: never by the length
/// of their base64.
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
    let name =
        message.name().map_or(Tokens::ZERO, |name| counter.count(name).saturating_add(Tokens(NAME_TOKENS)));
    count_parts(message, counter).saturating_add(name).saturating_add(Tokens(MESSAGE_TOKENS))
}

/// The size of some parts, without a message's framing.
pub fn count_parts<P: Parts + ?Sized>(parts: &P, counter: &(impl TokenCounter + ?Sized)) -> Tokens {
    let mut tokens = Tokens::ZERO;
    parts.for_each_part(&mut |part| tokens = tokens.saturating_add(count_part(part, counter)));
    tokens
}

/// The size of one part, without a message's framing.
pub fn count_part(part: PartView<'_>, counter: &(impl TokenCounter + ?Sized)) -> Tokens {
    match part {
        PartView::Text(text) => counter.count(text),
        PartView::Reasoning(reasoning) => counter.count(reasoning.text),
        PartView::ToolCall(call) => {
            let text = counter.count(call.name).saturating_add(counter.count(call.arguments));
            text.saturating_add(Tokens(CALL_TOKENS))
        }
        // Results nest one level: what stands inside is text and media.
        PartView::ToolResult(result) => count_flat(result.content, counter),
        PartView::Compaction(compaction) => counter.count(compaction.text),
        PartView::Unknown(unknown) => counter.count(unknown.raw),
        PartView::Media(media) => media_tokens(media),
        PartView::ApprovalRequest(_) | PartView::ApprovalResponse(_) => Tokens::ZERO,
    }
}

/// The size of a result's content. A result inside a result counts nothing: no wire format has one.
fn count_flat(content: &dyn Parts, counter: &(impl TokenCounter + ?Sized)) -> Tokens {
    let mut tokens = Tokens::ZERO;
    content.for_each_part(&mut |part| {
        if !matches!(part, PartView::ToolResult(_)) {
            tokens = tokens.saturating_add(count_part(part, counter));
        }
    });
    tokens
}

/// The size of a media part, by the formulas that `OpenAI` publishes for its vision models: an image of low detail has 85
/// tokens; another is fitted into 2,048 x 2,048 and its shorter side into 768, and has 85 tokens and 170 for each tile
/// of 512 x 512. Of unknown extent, an image counts as 1,024 x 1,024, a sound or video as a minute at ten tokens a
/// second, and a document as one page of 1,500 tokens.
#[must_use]
pub fn media_tokens(media: MediaView<'_>) -> Tokens {
    const PER_SECOND: u32 = 10;
    const PER_PAGE: u32 = 1_500;
    match media.kind {
        MediaKind::Image if media.extent.low_detail => Tokens(85),
        MediaKind::Image => {
            let (width, height) = media.extent.pixels.unwrap_or((1_024, 1_024));
            image_tokens(width, height)
        }
        MediaKind::Audio | MediaKind::Video => {
            Tokens((media.extent.millis.unwrap_or(60_000) / 1_000).saturating_mul(PER_SECOND))
        }
        MediaKind::Document => Tokens(media.extent.pages.unwrap_or(1).saturating_mul(PER_PAGE)),
    }
}

fn image_tokens(width: u32, height: u32) -> Tokens {
    let (mut width, mut height) = (u64::from(width.max(1)), u64::from(height.max(1)));
    let longer = width.max(height);
    if longer > 2_048 {
        (width, height) = (scale(width, 2_048, longer), scale(height, 2_048, longer));
    }
    let shorter = width.min(height);
    if shorter > 768 {
        (width, height) = (scale(width, 768, shorter), scale(height, 768, shorter));
    }
    let tiles = width.div_ceil(512).saturating_mul(height.div_ceil(512));
    Tokens::from_u64(tiles.saturating_mul(170).saturating_add(85))
}

/// `side` times `to` over `from`, at least one pixel.
fn scale(side: u64, to: u64, from: u64) -> u64 {
    side.saturating_mul(to).checked_div(from).unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::MediaExtent;

    fn image(width: u32, height: u32) -> Tokens {
        let mut extent = MediaExtent::UNKNOWN;
        extent.pixels = Some((width, height));
        media_tokens(MediaView::new(MediaKind::Image, "image/png").with_extent(extent))
    }

    #[test]
    fn images_count_by_the_published_examples() {
        assert_eq!(image(1_024, 1_024), Tokens(765));
        assert_eq!(image(2_048, 4_096), Tokens(1_105));
        assert_eq!(image(0, 0), Tokens(255));
        assert_eq!(image(u32::MAX, 1), Tokens(765));
    }
}
