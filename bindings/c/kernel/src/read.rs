//! Reads messages as pointers into the memory of the history, without a copy.

use epitome_core::attribution::{SeqRange, SourceKind};
use epitome_core::message::{MessageView, PartView, Parts};
use epitome_core::{ArenaMessage, Seq};

use crate::append::role_code;
use crate::call::{Call, Plain, Text};
use crate::error::{Error, code};
use crate::history::History;
use crate::summary::Span;

/// A message without its parts.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Message {
    seq: u64,
    tokens: u32,
    role: i32,
    is_summary: u32,
    is_cleared: u32,
    name: Text,
}

/// A piece of a message.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Part {
    kind: i32,
    is_error: u32,
    text: Text,
    id: Text,
    name: Text,
}

/// The kind of a piece of a message.
#[repr(i32)]
#[derive(Clone, Copy)]
pub enum PartCode {
    Text = 1,
    Call = 2,
    Result = 3,
    Other = 4,
}

// SAFETY: numbers, a pointer and a length.
unsafe impl Plain for Message {}
// SAFETY: numbers, pointers and lengths.
unsafe impl Plain for Part {}

/// Gives the message at a place in the order of the request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epitome_kernel_read_message(
    history: *const History,
    place: usize,
    message: *mut Message,
) -> Error {
    // SAFETY: the rules of the header for the pointers of a call.
    let call = unsafe { Call::new(history) };
    code((|| {
        let to = call.needed(message)?;
        to.put((&call.history()?.message_at(place).ok_or(Error::End)?).into());
        Ok(())
    })())
}

/// Gives the message at a place within a span.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epitome_kernel_read_message_in(
    history: *const History,
    span: *const Span,
    place: usize,
    message: *mut Message,
) -> Error {
    // SAFETY: the rules of the header for the pointers of a call.
    let call = unsafe { Call::new(history) };
    code((|| {
        let (to, range) = (call.needed(message)?, call.value(span)?.range());
        to.put((&call.history()?.messages_in(range).nth(place).ok_or(Error::End)?).into());
        Ok(())
    })())
}

/// Gives a part of the message with this sequence number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epitome_kernel_read_part(
    history: *const History,
    seq: u64,
    place: usize,
    part: *mut Part,
) -> Error {
    // SAFETY: the rules of the header for the pointers of a call.
    let call = unsafe { Call::new(history) };
    code((|| {
        let (to, range) = (call.needed(part)?, SeqRange { first: Seq(seq), last: Seq(seq) });
        let message = call.history()?.messages_in(range).next().ok_or(Error::End)?;
        let (mut at, mut found) = (0_usize, None);
        each_part(&message, &mut |part| {
            if at == place {
                found = Some(part);
            }
            at = at.saturating_add(1);
        });
        to.put(found.ok_or(Error::End)?);
        Ok(())
    })())
}

impl From<&ArenaMessage<'_>> for Message {
    fn from(message: &ArenaMessage<'_>) -> Self {
        Self {
            seq: message.seq().0,
            tokens: message.tokens().0,
            role: role_code(message.role()),
            is_summary: u32::from(message.attribution().source == SourceKind::Compaction),
            is_cleared: u32::from(message.is_elided()),
            name: message.name().map_or(Text::ABSENT, Text::of),
        }
    }
}

/// Calls `visit` for each part. A tool result with several texts becomes several parts with the same id.
fn each_part(message: &ArenaMessage<'_>, visit: &mut dyn FnMut(Part)) {
    message.for_each_part(&mut |part| match part {
        PartView::ToolResult(result) => {
            let base = Part {
                is_error: u32::from(result.is_error),
                id: Text::of(result.call_id),
                ..Part::of(PartCode::Result)
            };
            let mut empty = true;
            result.content.for_each_part(&mut |part| {
                empty = false;
                visit(Part { text: text_of(part).unwrap_or(Text::ABSENT), ..base });
            });
            if empty {
                visit(base);
            }
        }
        PartView::ToolCall(call) => visit(Part {
            text: Text::of(call.arguments),
            id: Text::of(call.id),
            name: Text::of(call.name),
            ..Part::of(PartCode::Call)
        }),
        part => visit(match text_of(part) {
            Some(text) => Part { text, ..Part::of(PartCode::Text) },
            None => Part::of(PartCode::Other),
        }),
    });
}

fn text_of(part: PartView<'_>) -> Option<Text> {
    if let PartView::Text(text) = part { Some(Text::of(text)) } else { None }
}

impl Part {
    const fn of(kind: PartCode) -> Self {
        Self { kind: kind as i32, is_error: 0, text: Text::ABSENT, id: Text::ABSENT, name: Text::ABSENT }
    }
}
