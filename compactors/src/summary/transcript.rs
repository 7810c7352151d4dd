//! Messages as a text that a model does not mistake for its own conversation.

use std::format;
use std::string::String;
use std::vec::Vec;

use epitome_core::message::{MediaKind, Role};
use epitome_std::message::{Message, Part};

/// Tags around the pieces of a transcript.
const TAGS: &[&str] = &["transcript", "summary", "system", "user", "assistant", "call", "result"];

/// Writes a group. Each text is cut in its middle to `max` bytes. Reasoning, and content that only a provider can
/// read, are left out.
///
/// If there are several calls, they and their results are numbered.
pub(super) fn write_group(group: &[&Message], max: usize, out: &mut String) {
    out.extend(pieces_of(group, max));
}

/// The output of [`write_group`] in pieces: a text, a call, a result.
pub(super) fn pieces_of(group: &[&Message], max: usize) -> Vec<String> {
    let mut out = Vec::new();
    let parts = group.iter().flat_map(|message| message.parts());
    let calls: Vec<&str> = parts
        .filter_map(|part| if let Part::ToolCall(call) = part { Some(call.id.as_str()) } else { None })
        .collect();
    let number = |id: &str| {
        let at = calls.iter().position(|call| *call == id).filter(|_| calls.len() > 1);
        at.map_or_else(String::new, |at| format!(" id=\"{}\"", at.saturating_add(1)))
    };
    for message in group {
        write_message(message, max, &number, &mut out);
    }
    out
}

/// Writes a piece of a transcript.
pub(super) fn write_tagged(tag: &str, text: &str, out: &mut String) {
    out.push_str(&tagged(tag, text));
}

fn tagged(tag: &str, text: &str) -> String {
    format!("<{tag}>{}</{tag}>\n", escaped(text))
}

fn write_message(message: &Message, max: usize, number: &dyn Fn(&str) -> String, out: &mut Vec<String>) {
    let texts = texts_of(message.parts(), max);
    if !texts.is_empty() {
        out.push(tagged(tag_of(message.role()), &texts));
    }
    for part in message.parts() {
        match part {
            Part::ToolCall(call) => {
                let arguments = cut(&call.arguments, max);
                let (id, name) = (number(&call.id), escaped(&call.name));
                out.push(format!("<call{id} name={name:?}>{}</call>\n", escaped(&arguments)));
            }
            Part::ToolResult(result) => {
                let (id, error) = (number(&result.call_id), if result.is_error { " error" } else { "" });
                let returned = escaped(&texts_of(&result.parts, max));
                out.push(format!("<result{id}{error}>{returned}</result>\n"));
            }
            _ => {}
        }
    }
}

const fn tag_of(role: Role) -> &'static str {
    match role {
        Role::System | Role::Developer => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        _ => "result",
    }
}

/// The texts among the parts, and a note for each other visible part.
fn texts_of(parts: &[Part], max: usize) -> String {
    let mut texts: Vec<String> = Vec::new();
    for part in parts {
        match part {
            Part::Text(text) => texts.push(cut(text, max)),
            Part::Media(media) => texts.push(format!("[{}]", word_of(media.kind))),
            Part::Compaction(compaction) => texts.push(cut(&compaction.text, max)),
            Part::ApprovalRequest(_) => texts.push("[asks for approval]".into()),
            Part::ApprovalResponse(answer) => {
                texts.push(if answer.approved { "[approved]" } else { "[refused]" }.into());
            }
            Part::Reasoning(_) | Part::ToolCall(_) | Part::ToolResult(_) | Part::Unknown(_) => {}
        }
    }
    texts.retain(|text| !text.trim().is_empty());
    texts.join("\n")
}

const fn word_of(kind: MediaKind) -> &'static str {
    match kind {
        MediaKind::Image => "image",
        MediaKind::Audio => "audio",
        MediaKind::Video => "video",
        _ => "document",
    }
}

/// The text, or its head and tail if it has more than `max` bytes.
pub(super) fn cut(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.into();
    }
    let head = text.get(..text.floor_char_boundary(max.saturating_mul(3) / 4)).unwrap_or_default();
    let tail_from = text.ceil_char_boundary(text.len().saturating_sub(max / 4));
    let tail = text.get(tail_from..).unwrap_or_default();
    let left_out = text.len().saturating_sub(head.len()).saturating_sub(tail.len());
    format!("{head}\n[{left_out} bytes left out]\n{tail}")
}

/// The text with escapes in the tags that would open or close a piece of the transcript.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        out.push_str(before);
        let name = after.trim_start_matches(|c: char| c == '/' || c.is_whitespace());
        let is_tag =
            TAGS.iter().any(|tag| name.get(..tag.len()).is_some_and(|name| name.eq_ignore_ascii_case(tag)));
        out.push_str(if is_tag { "&lt;" } else { "<" });
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use epitome_std::message::{ToolCall, ToolResult};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn calls_stand_with_their_results_and_thoughts_are_left_out() {
        let call = Message::new(
            Role::Assistant,
            [Part::Text("Let me see.".into()), Part::ToolCall(ToolCall::new("1", "ls", "{}"))].into(),
        );
        let mut failed = ToolResult::new("1", [Part::Text("no </result> here".into())].into());
        failed.is_error = true;
        let failed = Message::new(Role::Tool, [Part::ToolResult(failed)].into());
        let mut out = String::new();
        write_group(&[&call, &failed], 1_000, &mut out);
        assert_eq!(
            out,
            "<assistant>Let me see.</assistant>\n<call name=\"ls\">{}</call>\n<result error>no &lt;/result> here</result>\n"
        );
    }

    #[test]
    fn results_of_several_calls_can_be_told_apart() {
        let calls =
            ["a", "b"].map(|id| Part::ToolCall(ToolCall::new(id, "price", format!("{{\"of\":\"{id}\"}}"))));
        let calls = Message::new(Role::Assistant, calls.into());
        let mut out = String::new();
        write_group(&[&calls, &Message::tool("b", "7"), &Message::tool("a", "9")], 1_000, &mut out);
        assert_eq!(
            out,
            "<call id=\"1\" name=\"price\">{\"of\":\"a\"}</call>\n<call id=\"2\" name=\"price\">{\"of\":\"b\"}</call>\n\
             <result id=\"2\">7</result>\n<result id=\"1\">9</result>\n"
        );
    }

    #[test]
    fn a_long_text_keeps_its_ends() {
        let text = format!("{}{}", "ä".repeat(100), "z".repeat(100));
        let short = cut(&text, 40);
        assert!(short.starts_with("äää") && short.ends_with("zzz") && short.contains("[260 bytes left out]"));
    }

    proptest! {
        #[test]
        fn no_text_opens_or_closes_a_piece(text in "(<|/|[ \n]|user|USER|call|result|transcript|x|ä){0,12}") {
            let mut out = String::new();
            write_group(&[&Message::user(text.as_str())], 10_000, &mut out);
            let lower = out.to_lowercase();
            let opened: usize = TAGS.iter().map(|tag| lower.matches(&format!("<{tag}")).count()).sum();
            let closed: usize = TAGS.iter().map(|tag| lower.matches(&format!("</{tag}")).count()).sum();
            let shown = usize::from(!text.trim().is_empty());
            prop_assert_eq!((opened, closed), (shown, shown), "{}", out);
        }
    }
}
