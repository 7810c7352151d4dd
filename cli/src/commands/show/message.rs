//! One message as text for people.

use core::fmt;

use epitome::core::attribution::{Retention, SourceKind};
use epitome::message::{Media, MediaSource, Message, Part, Reasoning, ToolCall, ToolResult};
use serde::Deserializer;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::amount::{counted, grouped};
use crate::visible::{line, lines, without_base64};

/// A message of a conversation, with its place and size there.
#[derive(Debug)]
pub(in crate::commands) struct Shown {
    /// Its place, counted from 0.
    pub(in crate::commands) at: usize,
    pub(in crate::commands) turn: u32,
    pub(in crate::commands) tokens: u32,
    /// Whether the message answers a call that is not in the history.
    pub(in crate::commands) orphan: bool,
    pub(in crate::commands) message: Message,
}

/// Length at which calls and results are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands) enum Length {
    Short,
    Full,
}

/// Shown part of one argument of a call: a command, not the file that it writes.
const ARGUMENT: Cut = Cut { lines: 8, chars: 600 };
/// Shown part of a result: enough to recognize it, not enough to fill a screen.
const RESULT: Cut = Cut { lines: 16, chars: 1_200 };

#[derive(Debug, Clone, Copy)]
struct Cut {
    lines: usize,
    chars: usize,
}

impl Shown {
    /// The header line, and the parts, indented: no text of a message can look like a header.
    pub(in crate::commands) fn to_text(&self, length: Length) -> String {
        let mut text = format!(
            "#{}  turn {}  {}  ~{}{}\n",
            self.at,
            self.turn,
            self.message.role().as_str(),
            counted(self.tokens.into(), "token"),
            self.marks()
        );
        for part in self.message.parts() {
            write_part(part, length, "  ", &mut text);
        }
        text
    }

    /// Remarks about the message in its header.
    fn marks(&self) -> String {
        let about = self.message.attribution();
        let mut marks = Vec::new();
        match about.retention {
            Retention::Pinned => marks.push("pinned".to_owned()),
            Retention::Ephemeral => marks.push("ephemeral".to_owned()),
            _ => {}
        }
        match about.source {
            SourceKind::Context => marks.push("context".to_owned()),
            SourceKind::Compaction => marks.push("summary".to_owned()),
            _ => {}
        }
        marks.extend(self.message.name().map(|name| format!("by {}", line(name))));
        for part in self.message.parts() {
            match part {
                Part::ToolCall(call) => marks.push(format!("calls {}", line(&call.id))),
                Part::ToolResult(result) => marks.push(format!("answers {}", line(&result.call_id))),
                _ => {}
            }
        }
        if self.orphan {
            marks.push("answers no call".to_owned());
        }
        if self.message.is_incomplete() {
            marks.push("cut off".to_owned());
        }
        marks.into_iter().map(|mark| format!("  {mark}")).collect()
    }
}

fn write_part(part: &Part, length: Length, indent: &str, out: &mut String) {
    match part {
        Part::Text(text) => write_lines(text, None, indent, out),
        Part::Reasoning(reasoning) => write_reasoning(reasoning, indent, out),
        Part::ToolCall(call) => write_call(call, length, indent, out),
        Part::ToolResult(result) => write_result(result, length, indent, out),
        Part::Media(media) => note(&media_note(media), indent, out),
        Part::ApprovalRequest(asked) => {
            note(&format!("asks whether {} may run", line(or(&asked.call_id, &asked.id))), indent, out);
        }
        Part::ApprovalResponse(answer) => {
            let verdict = if answer.approved { "agreed to" } else { "refused" };
            note(
                &format!("{verdict} {}", line(or(&answer.approval.call_id, &answer.approval.id))),
                indent,
                out,
            );
        }
        Part::Compaction(left) => {
            let sealed =
                left.opaque.as_ref().map_or_else(String::new, |sealed| format!(", {}", bytes(sealed)));
            note(&format!("compacted by {}{sealed}", line(&left.provider)), indent, out);
            write_lines(&left.text, None, indent, out);
        }
        Part::Unknown(unknown) => {
            let what = format!(
                "{} part {}, {}",
                unknown.format.as_str(),
                unknown.kind.as_str(),
                bytes(&unknown.raw)
            );
            note(&line(&what), indent, out);
            if length == Length::Full {
                write_lines(&unknown.raw, None, indent, out);
            }
        }
    }
}

fn write_reasoning(reasoning: &Reasoning, indent: &str, out: &mut String) {
    if !reasoning.text.is_empty() {
        note("thinks", indent, out);
        write_lines(&reasoning.text, None, indent, out);
    }
    if let Some(sealed) = reasoning.opaque.as_ref().filter(|_| reasoning.text.is_empty()) {
        note(&format!("thinks, sealed: {}", bytes(sealed)), indent, out);
    }
}

fn write_call(call: &ToolCall, length: Length, indent: &str, out: &mut String) {
    *out += &format!("{indent}-> {}\n", line(&call.name));
    let (cut, inner) = (ARGUMENT.unless(length), format!("{indent}   "));
    let Some(arguments) = members(&call.arguments) else {
        return write_lines(&call.arguments, cut, &inner, out);
    };
    for (name, value) in arguments {
        let said = serde_json::from_str::<String>(value.get()).unwrap_or_else(|_| value.get().to_owned());
        let value = shortened(&said, cut);
        let name = line(&name);
        match value.contains('\n') {
            false => *out += &format!("{inner}{name}: {value}\n"),
            true => {
                *out += &format!("{inner}{name}:\n");
                write_safe(&value, &format!("{inner}  "), out);
            }
        }
    }
}

fn write_result(result: &ToolResult, length: Length, indent: &str, out: &mut String) {
    let failed = if result.is_error { " (an error)" } else { "" };
    *out += &format!("{indent}<- {}{failed}\n", line(&result.call_id));
    let (cut, inner) = (RESULT.unless(length), format!("{indent}   "));
    for part in &result.parts {
        match part {
            Part::Text(text) => write_lines(text, cut, &inner, out),
            // The reader limits the depth of results within results.
            other => write_part(other, length, &inner, out),
        }
    }
}

fn media_note(media: &Media) -> String {
    let kind = format!("{:?}", media.kind).to_lowercase();
    let mut text = format!("{kind} {}", line(&media.mime));
    if let Some((width, height)) = media.extent.pixels {
        text += &format!(", {width} x {height} pixels");
    }
    if let Some(millis) = media.extent.millis {
        text += &format!(", {} ms", grouped(millis.into()));
    }
    if let Some(pages) = media.extent.pages {
        text += &format!(", {}", counted(pages.into(), "page"));
    }
    match &media.source {
        MediaSource::Base64(data) => {
            let bytes = data.trim_end_matches('=').len() as u64 * 3 / 4;
            text + &format!(", about {}", counted(bytes, "byte"))
        }
        MediaSource::Uri(uri) => text + &format!(" at {}", line(&without_base64(uri))),
    }
}

/// A remark of the program, which no text of a message is.
fn note(what: &str, indent: &str, out: &mut String) {
    *out += &format!("{indent}[{what}]\n");
}

fn bytes(text: &str) -> String {
    counted(text.len() as u64, "byte")
}

fn or<'a>(first: &'a str, second: &'a str) -> &'a str {
    if first.is_empty() { second } else { first }
}

fn write_lines(text: &str, cut: Option<Cut>, indent: &str, out: &mut String) {
    if !text.is_empty() {
        write_safe(&shortened(text, cut), indent, out);
    }
}

/// Writes `text`, which is safe for a terminal, on separate lines.
fn write_safe(text: &str, indent: &str, out: &mut String) {
    for one in text.lines() {
        *out += indent;
        *out += one;
        out.push('\n');
    }
}

/// The beginning of `text`, safe for a terminal, with the size of the rest.
fn shortened(text: &str, cut: Option<Cut>) -> String {
    let text = lines(&without_base64(text));
    let Some(Cut { lines, chars }) = cut else { return text };
    let by_lines = text.match_indices('\n').nth(lines.saturating_sub(1)).map_or(text.len(), |(at, _)| at);
    let by_chars = text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at);
    let (start, rest) = text.split_at_checked(by_lines.min(by_chars)).unwrap_or((&text, ""));
    if rest.trim().is_empty() {
        return text;
    }
    let (left_chars, left_lines) =
        (rest.chars().count() as u64, rest.trim_matches('\n').lines().count() as u64);
    let (chars, lines) = (counted(left_chars, "character"), counted(left_lines, "line"));
    format!("{start}\n[.. {chars} on {lines} left out; --full shows them]")
}

impl Cut {
    fn unless(self, length: Length) -> Option<Self> {
        (length == Length::Short).then_some(self)
    }
}

/// The members of a JSON object in their order; `None` if `text` is no JSON object.
fn members(text: &str) -> Option<Vec<(String, Box<RawValue>)>> {
    struct Members;

    impl<'de> Visitor<'de> for Members {
        type Value = Vec<(String, Box<RawValue>)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members = Vec::new();
            while let Some(member) = map.next_entry()? {
                members.push(member);
            }
            Ok(members)
        }
    }

    let mut reader = serde_json::Deserializer::from_str(text);
    let members = reader.deserialize_map(Members).ok()?;
    reader.end().ok().map(|()| members)
}

#[cfg(test)]
mod tests {
    use epitome::core::message::Role;

    use super::*;

    fn text(parts: Vec<Part>, length: Length) -> String {
        let message = Message::new(Role::Assistant, parts);
        Shown { at: 3, turn: 1, tokens: 1_234, orphan: false, message }.to_text(length)
    }

    #[test]
    fn arguments_are_read_as_people_do() {
        let call = ToolCall::new("c\u{1b}1", "run", r#"{"command": "ls\n\u001b[2J", "n": [1, 2], "a": "b"}"#);
        let said = text(vec![Part::ToolCall(call)], Length::Short);
        let expected = "#3  turn 1  assistant  ~1,234 tokens  calls c␛1\n  -> run\n     command:\n       ls\n       ␛[2J\n     \
                        n: [1, 2]\n     a: b\n";
        assert_eq!(said, expected);
        // Arguments that are no JSON object are shown unchanged.
        for wrong in ["not json", "[1]", r#"{"a": 1} more"#, "\"x\""] {
            let said = text(vec![Part::ToolCall(ToolCall::new("c", "run", wrong))], Length::Short);
            assert!(said.ends_with(&format!("\n     {wrong}\n")), "{said}");
        }
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let result = |text: &str| vec![Part::ToolResult(ToolResult::new("c", vec![Part::Text(text.into())]))];
        let long: String = (0..40).map(|at| format!("line {at}\n")).collect();
        let said = text(result(&long), Length::Short);
        assert!(
            said.contains("line 15\n     [.. 193 characters on 24 lines left out; --full shows them]\n"),
            "{said}"
        );
        assert!(!said.contains("line 16"));
        let full = text(result(&long), Length::Full);
        assert!(full.contains("line 39\n") && !full.contains("left out"), "{full}");
        let wide = "é".repeat(1_201);
        let said = text(result(&wide), Length::Short);
        assert!(said.contains("[.. 1 character on 1 line left out"), "{said}");
        let said = text(result(&"é".repeat(1_200)), Length::Short);
        assert!(!said.contains("left out"), "{said}");
    }

    #[test]
    fn media_and_sealed_parts_are_sizes() {
        let data = "QUJD".repeat(900);
        let image = Media::new(
            epitome::core::message::MediaKind::Image,
            "image/png",
            MediaSource::Base64(data.as_str().into()),
        );
        let mut sealed = Reasoning::new("");
        sealed.opaque = Some(data.as_str().into());
        for length in [Length::Short, Length::Full] {
            let said = text(vec![Part::Media(image.clone()), Part::Reasoning(sealed.clone())], length);
            assert!(said.contains("[image image/png, about 2,700 bytes]"), "{said}");
            assert!(said.contains("[thinks, sealed: 3,600 bytes]") && !said.contains("QUJD"), "{said}");
        }
    }
}
