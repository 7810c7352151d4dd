//! A request in the form that a device sends: JSON, written directly to a writer of text, without a heap.

use core::fmt::{self, Write};

use crate::message::{CallKind, MediaView, MessageView, PartView, Parts, Role, ToolCallView};

/// Writes messages as the `messages` array of a Chat Completions request.
///
/// The function writes texts, calls and results: one text as a string, several as an array of text parts. A media part
/// becomes a text with its MIME type, because its bytes are not available here. The wire format has no place for
/// reasoning, hosted calls and their results, approvals and unknown parts: they are left out.
///
/// The messages are written as they are: nothing is repaired. A provider refuses a call without a result, so a call that
/// was not run needs a result that says so, before the next message of the user.
///
/// # Errors
/// Only the errors of `to`.
///
/// ```
/// use epitome_core::message::SimpleMessage;
/// use epitome_core::write_openai_chat;
///
/// let mut body = String::new();
/// write_openai_chat([SimpleMessage::user("Say \"hi\".")], &mut body)?;
/// assert_eq!(body, r#"[{"role":"user","content":"Say \"hi\"."}]"#);
/// # Ok::<(), core::fmt::Error>(())
/// ```
pub fn write_openai_chat<M: MessageView>(
    messages: impl IntoIterator<Item = M>,
    to: &mut impl Write,
) -> fmt::Result {
    let mut json = Json { to, separate: false };
    json.open("[")?;
    messages.into_iter().try_for_each(|message| write_message(&message, &mut json))?;
    json.close("]")
}

fn write_message(message: &dyn MessageView, json: &mut Json<'_>) -> fmt::Result {
    let mut result = Ok(());
    let (mut answers, mut pieces, mut calls) = (false, 0_usize, false);
    message.for_each_part(&mut |part| match part {
        PartView::ToolResult(answer) if message.role() != Role::Assistant => {
            answers = true;
            result = result.and_then(|()| write_result(answer.call_id, answer.content, json));
        }
        PartView::ToolCall(call) if is_sent(&call) => calls = true,
        part => pieces = pieces.saturating_add(usize::from(Piece::of(part).is_some())),
    });
    result?;
    // Results are messages of their own. The other content of the message follows behind them.
    if (answers && pieces == 0) || message.role() == Role::Tool {
        return Ok(());
    }
    json.open("{")?;
    json.field("role", message.role().as_str())?;
    if let Some(name) = message.name() {
        json.field("name", name)?;
    }
    json.key("content")?;
    if pieces == 0 && calls {
        json.raw("null")?;
    } else {
        write_content(message, pieces, json)?;
    }
    if calls {
        json.key("tool_calls")?;
        json.open("[")?;
        message.for_each_part(&mut |part| match part {
            PartView::ToolCall(call) if is_sent(&call) => {
                result = result.and_then(|()| write_call(&call, json));
            }
            _ => {}
        });
        result?;
        json.close("]")?;
    }
    json.close("}")
}

/// Writes a tool message. Its content may hold several texts.
fn write_result(call_id: &str, content: &dyn Parts, json: &mut Json<'_>) -> fmt::Result {
    let mut pieces = 0_usize;
    content.for_each_part(&mut |part| {
        pieces = pieces.saturating_add(usize::from(Piece::of(part).is_some()));
    });
    json.open("{")?;
    json.field("role", "tool")?;
    json.field("tool_call_id", call_id)?;
    json.key("content")?;
    write_content(content, pieces, json)?;
    json.close("}")
}

fn write_content<P: Parts + ?Sized>(parts: &P, pieces: usize, json: &mut Json<'_>) -> fmt::Result {
    if pieces == 0 {
        return json.string(Piece::Text(""));
    }
    if pieces > 1 {
        json.open("[")?;
    }
    let mut result = Ok(());
    parts.for_each_part(&mut |part| {
        if let (Some(piece), Ok(())) = (Piece::of(part), result) {
            result = if pieces == 1 { json.string(piece) } else { write_text_part(piece, json) };
        }
    });
    result?;
    if pieces > 1 { json.close("]") } else { Ok(()) }
}

fn write_text_part(piece: Piece<'_>, json: &mut Json<'_>) -> fmt::Result {
    json.open("{")?;
    json.field("type", "text")?;
    json.key("text")?;
    json.string(piece)?;
    json.close("}")
}

fn write_call(call: &ToolCallView<'_>, json: &mut Json<'_>) -> fmt::Result {
    json.open("{")?;
    json.field("id", call.id)?;
    json.field("type", "function")?;
    json.key("function")?;
    json.open("{")?;
    json.field("name", call.name)?;
    json.field("arguments", call.arguments)?;
    json.close("}")?;
    json.close("}")
}

fn is_sent(call: &ToolCallView<'_>) -> bool {
    call.kind == CallKind::Function
}

/// A part that is written as text.
#[derive(Clone, Copy)]
enum Piece<'a> {
    Text(&'a str),
    Media(MediaView<'a>),
}

impl<'a> Piece<'a> {
    fn of(part: PartView<'a>) -> Option<Self> {
        match part {
            PartView::Text(text) => Some(Self::Text(text)),
            PartView::Compaction(compaction) if !compaction.text.is_empty() => {
                Some(Self::Text(compaction.text))
            }
            PartView::Media(media) => Some(Self::Media(media)),
            _ => None,
        }
    }
}

/// JSON, with the commas that belong between values.
struct Json<'w> {
    to: &'w mut dyn Write,
    /// Whether the open array or object has a value already.
    separate: bool,
}

impl Json<'_> {
    fn open(&mut self, bracket: &str) -> fmt::Result {
        self.raw(bracket)?;
        self.separate = false;
        Ok(())
    }

    fn close(&mut self, bracket: &str) -> fmt::Result {
        self.separate = true;
        self.to.write_str(bracket)
    }

    fn field(&mut self, key: &str, value: &str) -> fmt::Result {
        self.key(key)?;
        self.string(Piece::Text(value))
    }

    /// A key; the value follows.
    fn key(&mut self, key: &str) -> fmt::Result {
        self.string(Piece::Text(key))?;
        self.separate = false;
        self.to.write_str(":")
    }

    fn string(&mut self, piece: Piece<'_>) -> fmt::Result {
        self.raw("\"")?;
        match piece {
            Piece::Text(text) => self.escaped(text)?,
            Piece::Media(media) => {
                self.to.write_str("[media left out: ")?;
                self.escaped(media.mime)?;
                self.to.write_str("]")?;
            }
        }
        self.to.write_str("\"")
    }

    /// A value, or the beginning of one.
    fn raw(&mut self, text: &str) -> fmt::Result {
        if self.separate {
            self.to.write_str(",")?;
        }
        self.separate = true;
        self.to.write_str(text)
    }

    /// Text between quotes: RFC 8259, section 7.
    fn escaped(&mut self, text: &str) -> fmt::Result {
        for run in text.split_inclusive(|c: char| c < ' ' || c == '"' || c == '\\') {
            let last = run.as_bytes().last().copied().unwrap_or(b' ');
            let plain = if last < b' ' || last == b'"' || last == b'\\' {
                run.len().saturating_sub(1)
            } else {
                run.len()
            };
            self.to.write_str(run.get(..plain).unwrap_or_default())?;
            if plain < run.len() {
                match last {
                    b'"' => self.to.write_str("\\\"")?,
                    b'\\' => self.to.write_str("\\\\")?,
                    b'\n' => self.to.write_str("\\n")?,
                    b'\r' => self.to.write_str("\\r")?,
                    b'\t' => self.to.write_str("\\t")?,
                    _ => self.control(last)?,
                }
            }
        }
        Ok(())
    }

    fn control(&mut self, byte: u8) -> fmt::Result {
        let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap_or('0');
        self.to.write_str("\\u00")?;
        self.to.write_char(digit(byte >> 4))?;
        self.to.write_char(digit(byte & 0xF))
    }
}
