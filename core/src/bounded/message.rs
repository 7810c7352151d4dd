//! Decoding of a record as the message that was written.

use crate::attribution::{AttributionView, Authority, Retention, SeqRange, SourceKind};
use crate::message::{
    ApprovalAnswerView, ApprovalView, CallKind, CompactionView, MediaExtent, MediaView, MessageView,
    PartView, Parts, ReasoningView, Role, ToolCallView, ToolResultView, UnknownView,
};
use crate::{Seq, Tokens};

use super::bytes::Reader;
use super::encode::{
    AUTHORITIES, DERIVED_RANGES_MAX, EXTRAS, MEDIA, RETENTIONS, ROLES, SOURCES, extent, tag,
};
use super::results::ResultAt;

/// A message of a [`BoundedHistory`](super::BoundedHistory), borrowed from its arena.
///
/// ```
/// use epitome_core::message::{MessageView, PartView, Parts, Role, SimpleMessage};
/// use epitome_core::{BoundedHistory, ClassEstimator, Seq};
///
/// let mut history = BoundedHistory::<4, 128>::new();
/// history.push(&SimpleMessage::user("Hello"), &ClassEstimator::new())?;
/// let message = history.messages().next().expect("one was pushed");
/// assert_eq!((message.seq(), message.role()), (Seq(0), Role::User));
/// message.for_each_part(&mut |part| assert!(matches!(part, PartView::Text("Hello"))));
/// # Ok::<(), epitome_core::Full>(())
/// ```
#[derive(Clone, Copy)]
pub struct ArenaMessage<'a> {
    seq: Seq,
    tokens: Tokens,
    role: Role,
    source: SourceKind,
    authority: Authority,
    retention: Retention,
    response_id: Option<&'a str>,
    name: Option<&'a str>,
    label: Option<&'a str>,
    source_id: &'a str,
    derived: [SeqRange; DERIVED_RANGES_MAX],
    derived_len: usize,
    parts: EncodedParts<'a>,
}

impl<'a> ArenaMessage<'a> {
    /// Reads a record. `None` if the bytes are no record.
    pub(super) fn read(record: &'a [u8], seq: Seq, tokens: Tokens) -> Option<Self> {
        let mut from = Reader::new(record);
        let (first, second) = (from.byte()?, from.byte()?);
        let mut message = Self {
            seq,
            tokens,
            role: *ROLES.get(usize::from(first & 7))?,
            source: *SOURCES.get(usize::from((first >> 3) & 7))?,
            retention: *RETENTIONS.get(usize::from(first >> 6))?,
            authority: *AUTHORITIES.get(usize::from(second & 7))?,
            response_id: None,
            name: None,
            label: None,
            source_id: "",
            derived: [SeqRange { first: Seq(0), last: Seq(0) }; DERIVED_RANGES_MAX],
            derived_len: 0,
            parts: EncodedParts(&[]),
        };
        if second & EXTRAS != 0 {
            message.response_id = from.maybe()?;
            message.name = from.maybe()?;
            message.label = from.maybe()?;
            message.source_id = from.text()?;
            message.derived_len = from.length()?;
            for range in message.derived.get_mut(..message.derived_len)? {
                *range = SeqRange { first: Seq(from.number()?), last: Seq(from.number()?) };
            }
        }
        message.parts = EncodedParts(from.rest());
        Some(message)
    }

    /// The sequence number of the message; for a summary, that of the first message that it replaces.
    #[must_use]
    pub const fn seq(&self) -> Seq {
        self.seq
    }

    /// The size of the message, as it was counted when the message was added.
    #[must_use]
    pub const fn tokens(&self) -> Tokens {
        self.tokens
    }

    /// Whether the message holds a tool result that a compaction has elided: the content of the result is a note.
    #[must_use]
    pub fn is_elided(&self) -> bool {
        let mut from = Reader::new(self.parts.0);
        core::iter::from_fn(|| read_part(&mut from))
            .any(|part| matches!(part, Encoded::Result { what, .. } if what.elided))
    }

    /// Place of the first result in the record of the message, which has `len` bytes.
    pub(super) fn first_result(&self, len: usize) -> Option<ResultAt> {
        let mut from = Reader::new(self.parts.0);
        loop {
            let begun = from;
            let place = |at: Reader<'_>| len.saturating_sub(at.rest().len());
            if let Encoded::Result { what, .. } = read_part(&mut from)? {
                let mut id = begun;
                id.bytes(if what.size.is_some() { 5 } else { 1 })?;
                let mut behind = id;
                behind.text()?;
                return Some(ResultAt {
                    tag: place(begun),
                    id: place(id)..place(behind),
                    end: place(from),
                    is_error: what.is_error,
                    size: what.size,
                });
            }
        }
    }

    /// Whether all parts of the message can be read.
    pub(super) fn is_sound(&self) -> bool {
        self.parts.is_sound()
    }
}

impl Parts for ArenaMessage<'_> {
    fn for_each_part(&self, visit: &mut dyn FnMut(PartView<'_>)) {
        self.parts.for_each_part(visit);
    }
}

impl MessageView for ArenaMessage<'_> {
    fn role(&self) -> Role {
        self.role
    }

    fn attribution(&self) -> AttributionView<'_> {
        AttributionView {
            source_id: self.source_id,
            source: self.source,
            authority: self.authority,
            retention: self.retention,
            derived_from: self.derived.get(..self.derived_len).unwrap_or_default(),
            label: self.label,
        }
    }

    fn response_id(&self) -> Option<&str> {
        self.response_id
    }

    fn name(&self) -> Option<&str> {
        self.name
    }
}

/// Prints no text: a history does not leak its messages into a log.
impl core::fmt::Debug for ArenaMessage<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ArenaMessage")
            .field("seq", &self.seq)
            .field("role", &self.role)
            .field("tokens", &self.tokens)
            .finish_non_exhaustive()
    }
}

/// A run of encoded parts.
#[derive(Clone, Copy)]
struct EncodedParts<'a>(&'a [u8]);

impl EncodedParts<'_> {
    /// Whether all parts can be read to the end, also the parts inside results.
    fn is_sound(&self) -> bool {
        let mut from = Reader::new(self.0);
        while !from.is_empty() {
            match read_part(&mut from) {
                Some(Encoded::Result { content, .. }) => {
                    let mut inner = Reader::new(content.0);
                    while !inner.is_empty() {
                        if !matches!(read_part(&mut inner), Some(Encoded::Flat(_))) {
                            return false;
                        }
                    }
                }
                Some(Encoded::Flat(_)) => {}
                None => return false,
            }
        }
        true
    }
}

impl Parts for EncodedParts<'_> {
    fn for_each_part(&self, visit: &mut dyn FnMut(PartView<'_>)) {
        let mut from = Reader::new(self.0);
        while let Some(part) = read_part(&mut from) {
            match part {
                Encoded::Flat(part) => visit(part),
                Encoded::Result { call_id, content, what } => {
                    let result = ToolResultView::new(call_id, &content).with_error(what.is_error);
                    visit(PartView::ToolResult(result));
                }
            }
        }
    }
}

/// A part that was read. The view of a result borrows the content of the result, so the content is kept separately.
enum Encoded<'a> {
    Flat(PartView<'a>),
    Result { call_id: &'a str, content: EncodedParts<'a>, what: ResultFacts },
}

/// Facts in the tag of a result, and its size.
#[derive(Debug, Clone, Copy)]
struct ResultFacts {
    is_error: bool,
    elided: bool,
    size: Option<Tokens>,
}

impl ResultFacts {
    /// `None` if the tag belongs to another part, or the size is missing.
    fn read(tag: u8, from: &mut Reader<'_>) -> Option<Self> {
        let (is_error, elided, sized) = match tag {
            tag::RESULT => (false, false, false),
            tag::ERROR_RESULT => (true, false, false),
            tag::SIZED_RESULT => (false, false, true),
            tag::SIZED_ERROR_RESULT => (true, false, true),
            tag::ELIDED_RESULT => (false, true, false),
            tag::ELIDED_ERROR_RESULT => (true, true, false),
            _ => return None,
        };
        let size = if sized { Some(Tokens(from.word()?)) } else { None };
        Some(Self { is_error, elided, size })
    }
}

fn read_part<'a>(from: &mut Reader<'a>) -> Option<Encoded<'a>> {
    let tag = from.byte()?;
    let part = match tag {
        tag::TEXT => PartView::Text(from.text()?),
        tag::REASONING => {
            let (id, text, opaque) = (from.maybe()?, from.text()?, from.maybe()?);
            PartView::Reasoning(ReasoningView::new(text).with_id(id).with_opaque(opaque))
        }
        tag::CALL | tag::HOSTED_CALL => {
            let kind = if tag == tag::CALL { CallKind::Function } else { CallKind::Hosted };
            let (id, name, arguments) = (from.text()?, from.text()?, from.text()?);
            PartView::ToolCall(ToolCallView::new(id, name, arguments).with_kind(kind))
        }
        tag::MEDIA => PartView::Media(read_media(from)?),
        tag::APPROVAL_REQUEST => PartView::ApprovalRequest(read_approval(from)?),
        tag::DENIED | tag::APPROVED => {
            PartView::ApprovalResponse(ApprovalAnswerView::new(read_approval(from)?, tag == tag::APPROVED))
        }
        tag::COMPACTION | tag::SIZED_COMPACTION => {
            let tokens = if tag == tag::SIZED_COMPACTION { Some(Tokens(from.word()?)) } else { None };
            let view = CompactionView::new(from.text()?, from.text()?, from.maybe()?);
            PartView::Compaction(view.with_tokens(tokens))
        }
        tag::UNKNOWN => PartView::Unknown(UnknownView::new(from.text()?, from.text()?, from.text()?)),
        _ => {
            let what = ResultFacts::read(tag, from)?;
            let (call_id, len) = (from.text()?, from.length()?);
            let content = EncodedParts(from.bytes(len)?);
            return Some(Encoded::Result { call_id, content, what });
        }
    };
    Some(Encoded::Flat(part))
}

fn read_approval<'a>(from: &mut Reader<'a>) -> Option<ApprovalView<'a>> {
    Some(ApprovalView::new(from.text()?, from.text()?))
}

fn read_media<'a>(from: &mut Reader<'a>) -> Option<MediaView<'a>> {
    let kind = *MEDIA.get(usize::from(from.byte()?))?;
    let mime = from.text()?;
    let flags = from.byte()?;
    let mut number = |bit: u8| match flags & bit {
        0 => Some(None),
        _ => Some(Some(u32::try_from(from.number()?).ok()?)),
    };
    let (width, height) = (number(extent::PIXELS)?, number(extent::PIXELS)?);
    let extent = MediaExtent {
        pixels: width.zip(height),
        millis: number(extent::MILLIS)?,
        pages: number(extent::PAGES)?,
        low_detail: flags & extent::LOW_DETAIL != 0,
    };
    Some(MediaView::new(kind, mime).with_extent(extent))
}
