//! Writes generated messages as Chat Completions JSON.

use std::io::{self, Write};

use serde_json::to_string as quoted;

use super::Message;

/// Writes messages as a JSON array, one to a line.
///
/// # Errors
/// The errors of `out`.
pub fn write_json<'p>(messages: impl Iterator<Item = Message<'p>>, out: &mut impl Write) -> io::Result<()> {
    for (at, message) in messages.enumerate() {
        out.write_all(if at == 0 { b"[\n" } else { b",\n" })?;
        write_message(&message, out)?;
    }
    out.write_all(b"\n]\n")
}

/// Writes messages as lines of JSON.
///
/// # Errors
/// The errors of `out`.
pub fn write_jsonl<'p>(
    mut messages: impl Iterator<Item = Message<'p>>,
    out: &mut impl Write,
) -> io::Result<()> {
    messages.try_for_each(|message| {
        write_message(&message, out)?;
        out.write_all(b"\n")
    })
}

fn write_message(message: &Message<'_>, out: &mut impl Write) -> io::Result<()> {
    write!(out, "{{\"role\":\"{}\"", message.role.as_str())?;
    if let Some(id) = message.answers() {
        write!(out, ",\"tool_call_id\":{}", quoted(id)?)?;
    }
    match message.text {
        "" => out.write_all(b",\"content\":null")?,
        text => write!(out, ",\"content\":{}", quoted(text)?)?,
    }
    for (at, (id, name, arguments)) in message.calls().enumerate() {
        out.write_all(if at == 0 { b",\"tool_calls\":[" } else { b"," })?;
        let (id, name, arguments) = (quoted(id)?, quoted(name)?, quoted(arguments)?);
        write!(
            out,
            "{{\"id\":{id},\"type\":\"function\",\"function\":{{\"name\":{name},\"arguments\":{arguments}}}}}"
        )?;
    }
    out.write_all(if message.calls.is_empty() { b"}" } else { b"]}" })
}
