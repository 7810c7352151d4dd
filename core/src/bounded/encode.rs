//! Encoding of a message as a record: two bytes of head, the extras if the head announces them, then the parts behind
//! their tags.
//!
//! ```text
//! head     role (3 bits) source (3) retention (2) | authority (3) extras (1)
//! extras   response id? name? label? source id, count of covered ranges, first and last of each
//! part     tag, then its fields: texts behind their length, texts that may be absent behind their length plus one
//! result   tag, size in tokens if the tag says so (4 bytes), call id, length of its parts, its parts
//! ```

use crate::Tokens;
use crate::attribution::{Authority, Retention, SourceKind};
use crate::message::{CallKind, MediaKind, MediaView, MessageView, PartView, Role};

use super::bytes::Writer;

/// The marker in the place of the middle of a text that
/// [`BoundedHistory::push_clamped`](super::BoundedHistory::push_clamped) has shortened.
///
/// ```
/// assert_eq!(epitome_core::CLAMP_MARKER.trim(), "[... cut ...]");
/// ```
pub const CLAMP_MARKER: &str = "\n[... cut ...]\n";

/// Maximum number of ranges of [`derived_from`](crate::attribution::AttributionView::derived_from) in a message of a
/// [`BoundedHistory`](super::BoundedHistory): a summary needs one, a summary around pins a few.
pub const DERIVED_RANGES_MAX: usize = 4;

pub(super) const ROLES: [Role; 5] = [Role::System, Role::Developer, Role::User, Role::Assistant, Role::Tool];
pub(super) const SOURCES: [SourceKind; 5] =
    [SourceKind::Caller, SourceKind::History, SourceKind::Context, SourceKind::Tool, SourceKind::Compaction];
pub(super) const RETENTIONS: [Retention; 3] = [Retention::Pinned, Retention::Normal, Retention::Ephemeral];
pub(super) const AUTHORITIES: [Authority; 5] =
    [Authority::Retrieved, Authority::Assistant, Authority::User, Authority::Developer, Authority::System];
pub(super) const MEDIA: [MediaKind; 4] =
    [MediaKind::Image, MediaKind::Audio, MediaKind::Video, MediaKind::Document];

/// The first byte of a part.
pub(super) mod tag {
    pub(crate) const TEXT: u8 = 1;
    pub(crate) const REASONING: u8 = 2;
    pub(crate) const CALL: u8 = 3;
    pub(crate) const HOSTED_CALL: u8 = 4;
    pub(crate) const RESULT: u8 = 5;
    pub(crate) const ERROR_RESULT: u8 = 6;
    pub(crate) const MEDIA: u8 = 7;
    pub(crate) const APPROVAL_REQUEST: u8 = 8;
    pub(crate) const DENIED: u8 = 9;
    pub(crate) const APPROVED: u8 = 10;
    pub(crate) const COMPACTION: u8 = 11;
    pub(crate) const UNKNOWN: u8 = 12;
    /// A result that may be elided: its size follows.
    pub(crate) const SIZED_RESULT: u8 = 13;
    pub(crate) const SIZED_ERROR_RESULT: u8 = 14;
    /// A result that was elided: its content is a note.
    pub(crate) const ELIDED_RESULT: u8 = 15;
    pub(crate) const ELIDED_ERROR_RESULT: u8 = 16;
    /// A compaction with the size that its provider reported: the size follows.
    pub(crate) const SIZED_COMPACTION: u8 = 17;
}

/// Flag in the second byte of the head: the extras follow.
pub(super) const EXTRAS: u8 = 1 << 3;

/// Flags of the numbers of a media part's extent that follow.
pub(super) mod extent {
    pub(crate) const PIXELS: u8 = 1;
    pub(crate) const MILLIS: u8 = 1 << 1;
    pub(crate) const PAGES: u8 = 1 << 2;
    pub(crate) const LOW_DETAIL: u8 = 1 << 3;
}

/// Form in which a message is written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    /// Maximum number of bytes of each text of the message.
    pub(super) text_max: usize,
    /// Size of the first result, if it is written with the message: four bytes.
    pub(super) result: Option<Tokens>,
}

impl Form {
    /// All texts whole, and no sizes.
    pub(super) const PLAIN: Self = Self { text_max: usize::MAX, result: None };
}

/// Writes a message.
pub(super) fn write_message<M: MessageView + ?Sized>(message: &M, form: Form, to: &mut Writer<'_>) {
    let attribution = message.attribution();
    let (response, name) = (message.response_id(), message.name());
    let (label, source_id, derived) = (attribution.label, attribution.source_id, attribution.derived_from);
    let plain = response.is_none() && name.is_none() && label.is_none();
    let plain = plain && source_id.is_empty() && derived.is_empty();
    let role = code(&ROLES, message.role(), to);
    let source = code(&SOURCES, attribution.source, to);
    let retention = code(&RETENTIONS, attribution.retention, to);
    let authority = code(&AUTHORITIES, attribution.authority, to);
    to.byte(role | (source << 3) | (retention << 6));
    to.byte(authority | if plain { 0 } else { EXTRAS });
    if !plain {
        [response, name, label].into_iter().for_each(|text| to.maybe(text));
        to.text(source_id);
        if derived.len() > DERIVED_RANGES_MAX {
            to.refuse();
        }
        to.length(derived.len());
        for range in derived {
            to.number(range.first.0);
            to.number(range.last.0);
        }
    }
    // A result in a message of the model comes from a hosted tool, and is never elided.
    let mut result = form.result.filter(|_| message.role() != Role::Assistant);
    message.for_each_part(&mut |part| {
        let is_result = matches!(part, PartView::ToolResult(_));
        write_part(part, Form { result, ..form }, to);
        result = result.filter(|_| !is_result);
    });
}

/// The position of `value` among `all` values of its kind.
fn code<T: PartialEq>(all: &[T], value: T, to: &mut Writer<'_>) -> u8 {
    let place = all.iter().position(|one| *one == value).and_then(|at| u8::try_from(at).ok());
    place.unwrap_or_else(|| {
        to.refuse();
        0
    })
}

fn write_part(part: PartView<'_>, Form { text_max, result: size }: Form, to: &mut Writer<'_>) {
    if let PartView::ToolResult(result) = part {
        to.byte(match (size.is_some(), result.is_error) {
            (false, false) => tag::RESULT,
            (false, true) => tag::ERROR_RESULT,
            (true, false) => tag::SIZED_RESULT,
            (true, true) => tag::SIZED_ERROR_RESULT,
        });
        if let Some(size) = size {
            to.word(size.0);
        }
        to.text(result.call_id);
        // Its content is a run of parts of known length. A result inside a result has no meaning on any wire, and is
        // left out, as it is when tokens are counted.
        let mut measure = Writer::new(&mut []);
        result.content.for_each_part(&mut |part| write_flat_part(part, text_max, &mut measure));
        to.length(measure.written());
        result.content.for_each_part(&mut |part| write_flat_part(part, text_max, to));
    } else {
        write_flat_part(part, text_max, to);
    }
}

fn write_flat_part(part: PartView<'_>, text_max: usize, to: &mut Writer<'_>) {
    match part {
        PartView::Text(text) => write_clamped(text, text_max, to),
        PartView::Reasoning(reasoning) => {
            to.byte(tag::REASONING);
            to.maybe(reasoning.id);
            to.text(reasoning.text);
            to.maybe(reasoning.opaque);
        }
        PartView::ToolCall(call) => {
            to.byte(if call.kind == CallKind::Hosted { tag::HOSTED_CALL } else { tag::CALL });
            [call.id, call.name, call.arguments].into_iter().for_each(|text| to.text(text));
        }
        PartView::ToolResult(_) => {}
        PartView::Media(media) => write_media(media, to),
        PartView::ApprovalRequest(approval) => {
            to.byte(tag::APPROVAL_REQUEST);
            to.text(approval.id);
            to.text(approval.call_id);
        }
        PartView::ApprovalResponse(answer) => {
            to.byte(if answer.approved { tag::APPROVED } else { tag::DENIED });
            to.text(answer.approval.id);
            to.text(answer.approval.call_id);
        }
        PartView::Compaction(compaction) => {
            match compaction.tokens {
                Some(tokens) => {
                    to.byte(tag::SIZED_COMPACTION);
                    to.word(tokens.0);
                }
                None => to.byte(tag::COMPACTION),
            }
            to.text(compaction.provider);
            to.text(compaction.text);
            to.maybe(compaction.opaque);
        }
        PartView::Unknown(unknown) => {
            to.byte(tag::UNKNOWN);
            to.text(unknown.format);
            to.text(unknown.kind);
            to.text(unknown.raw);
        }
    }
}

/// Writes a media part without its bytes: its kind, MIME type and extent.
fn write_media(media: MediaView<'_>, to: &mut Writer<'_>) {
    let of = media.extent;
    let flag = |there: bool, bit: u8| if there { bit } else { 0 };
    to.byte(tag::MEDIA);
    let kind = code(&MEDIA, media.kind, to);
    to.byte(kind);
    to.text(media.mime);
    to.byte(
        flag(of.pixels.is_some(), extent::PIXELS)
            | flag(of.millis.is_some(), extent::MILLIS)
            | flag(of.pages.is_some(), extent::PAGES)
            | flag(of.low_detail, extent::LOW_DETAIL),
    );
    let (width, height) = of.pixels.unzip();
    [width, height, of.millis, of.pages].into_iter().flatten().for_each(|n| to.number(u64::from(n)));
}

/// Writes a text. A text longer than `text_max` becomes its head and its tail, with [`CLAMP_MARKER`] between them.
fn write_clamped(text: &str, text_max: usize, to: &mut Writer<'_>) {
    to.byte(tag::TEXT);
    match cut(text, text_max) {
        None => to.text(text),
        Some((head, tail)) => {
            to.length(head.len().saturating_add(CLAMP_MARKER.len()).saturating_add(tail.len()));
            [head, CLAMP_MARKER, tail].into_iter().for_each(|piece| to.put(piece.as_bytes()));
        }
    }
}

/// The head and the tail that stay of a text longer than `text_max` bytes. With the marker they have at most `text_max`
/// bytes.
fn cut(text: &str, text_max: usize) -> Option<(&str, &str)> {
    if text.len() <= text_max {
        return None;
    }
    let kept = text_max.saturating_sub(CLAMP_MARKER.len());
    let head = text.floor_char_boundary(kept.div_ceil(2));
    let tail = text.ceil_char_boundary(text.len().saturating_sub(kept / 2));
    Some((text.split_at_checked(head)?.0, text.split_at_checked(tail)?.1))
}
