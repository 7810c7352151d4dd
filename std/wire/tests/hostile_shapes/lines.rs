//! The lines that hostile shapes consist of: one record of each format.

use core::fmt::Write as _;

/// The parent in a comb: a chain of the even numbers, each of which has an odd number as a further end.
pub(crate) fn comb(at: usize) -> Option<usize> {
    at.checked_sub(if at.is_multiple_of(2) { 2 } else { 1 })
}

pub(crate) fn lines(count: usize, mut line: impl FnMut(usize) -> String) -> String {
    (0..count).fold(String::new(), |mut text, at| {
        let separator = if at == 0 { "" } else { "\n" };
        write!(text, "{separator}{}", line(at)).unwrap();
        text
    })
}

pub(crate) fn claude(count: usize, mut place: impl FnMut(usize) -> (Option<usize>, bool)) -> String {
    lines(count, |at| {
        let (parent, is_side) = place(at);
        claude_line(at, parent, is_side, r#"{"role":"user","content":"go"}"#, "user")
    })
}

pub(crate) fn claude_line(
    at: usize,
    parent: Option<usize>,
    is_side: bool,
    message: &str,
    kind: &str,
) -> String {
    let parent = parent.map_or_else(|| "null".to_owned(), |parent| format!("\"u{parent}\""));
    format!(
        r#"{{"parentUuid":{parent},"isSidechain":{is_side},"sessionId":"s","type":"{kind}","message":{message},"uuid":"u{at}","n":1}}"#
    )
}

pub(crate) fn claude_user(at: usize, parent: Option<usize>, text: &str) -> String {
    claude_line(at, parent, false, &format!(r#"{{"role":"user","content":"{text}"}}"#), "user")
}

pub(crate) fn claude_says(at: usize, parent: Option<usize>, id: &str, block: &str) -> String {
    let message = format!(
        r#"{{"id":"{id}","type":"message","role":"assistant","content":[{block}],"usage":{{"input_tokens":10,"output_tokens":7}}}}"#
    );
    claude_line(at, parent, false, &message, "assistant")
}

pub(crate) fn claude_call(id: &str) -> String {
    format!(r#"{{"type":"tool_use","id":"{id}","name":"f","input":{{}}}}"#)
}

pub(crate) fn claude_result(at: usize, parent: Option<usize>, call: &str) -> String {
    let content = format!(r#"[{{"tool_use_id":"{call}","type":"tool_result","content":"x"}}]"#);
    claude_line(at, parent, false, &format!(r#"{{"role":"user","content":{content}}}"#), "user")
}

pub(crate) fn claude_boundary(at: usize, before: Option<usize>) -> String {
    let before = before.map_or_else(|| "null".to_owned(), |before| format!("\"u{before}\""));
    format!(
        r#"{{"parentUuid":null,"logicalParentUuid":{before},"isSidechain":false,"sessionId":"s","type":"system","subtype":"compact_boundary","compactMetadata":{{"trigger":"auto","preTokens":9}},"uuid":"u{at}"}}"#
    )
}

pub(crate) fn codex_line(item: &str) -> String {
    format!(r#"{{"timestamp":"t","type":"response_item","payload":{item}}}"#)
}

pub(crate) fn codex_said(role: &str, text: &str) -> String {
    format!(r#"{{"type":"message","role":"{role}","content":"{text}"}}"#)
}

pub(crate) fn codex_item(role: &str, at: usize) -> String {
    codex_line(&codex_said(role, &format!("word {at}")))
}

pub(crate) fn codex_compacted(at: usize, history: &str) -> String {
    let history =
        if history.is_empty() { String::new() } else { format!(r#","replacement_history":[{history}]"#) };
    format!(r#"{{"timestamp":"t","type":"compacted","payload":{{"message":"so far {at}"{history}}}}}"#)
}

pub(crate) fn codex_report(at: usize) -> String {
    format!(
        r#"{{"timestamp":"t","type":"event_msg","payload":{{"type":"token_count","info":{{"last_token_usage":{{"input_tokens":{at},"output_tokens":1,"total_tokens":9}}}}}}}}"#
    )
}

pub(crate) fn gemini(count: usize, line: impl FnMut(usize) -> String) -> String {
    format!("{{\"sessionId\":\"s\",\"projectHash\":\"p\"}}\n{}", lines(count, line))
}

pub(crate) fn gemini_user(at: usize, text: &str) -> String {
    format!(r#"{{"id":"{at}","type":"user","content":"{text}"}}"#)
}

pub(crate) fn gemini_call(at: usize, id: &str) -> String {
    format!(
        r#"{{"id":"{at}","type":"gemini","content":"","toolCalls":[{{"id":"{id}","name":"f","args":{{}},"status":"success","result":[{{"functionResponse":{{"id":"{id}","name":"f","response":{{"output":"x"}}}}}}]}}]}}"#
    )
}

pub(crate) fn gemini_answer(at: usize, id: &str) -> String {
    format!(
        r#"{{"id":"{at}","type":"user","content":[{{"functionResponse":{{"id":"{id}","name":"f","response":{{"output":"x"}}}}}}]}}"#
    )
}

pub(crate) fn pi(count: usize, line: impl FnMut(usize) -> String) -> String {
    format!("{{\"type\":\"session\",\"id\":\"s\",\"timestamp\":\"t\",\"cwd\":\"/\"}}\n{}", lines(count, line))
}

pub(crate) fn pi_user(at: usize, parent: Option<usize>) -> String {
    let parent = parent.map_or_else(|| "null".to_owned(), |parent| format!("\"u{parent}\""));
    format!(
        r#"{{"type":"message","id":"u{at}","parentId":{parent},"message":{{"role":"user","content":"go on"}}}}"#
    )
}

pub(crate) fn pi_cut(at: usize, parent: usize, first: usize) -> String {
    format!(
        r#"{{"type":"compaction","id":"u{at}","parentId":"u{parent}","summary":"so far","firstKeptEntryId":"u{first}","tokensBefore":9}}"#
    )
}

/// An export of ChatGPT with this many messages. Each follows the message that `parent` returns.
pub(crate) fn chatgpt(n: usize, parent: impl Fn(usize) -> Option<usize>) -> String {
    let node = |at: usize| {
        let role = if at.is_multiple_of(2) { "user" } else { "assistant" };
        let parent = parent(at).map_or_else(|| "null".to_owned(), |parent| format!(r#""n{parent}""#));
        format!(
            r#""n{at}":{{"message":{{"author":{{"role":"{role}"}},"content":{{"content_type":"text","parts":["go"]}}}},"parent":{parent}}}"#
        )
    };
    format!(r#"{{"title":"t","mapping":{{{}}}}}"#, (0..n).map(node).collect::<Vec<_>>().join(","))
}

/// An export of claude.ai in the same form.
pub(crate) fn claude_ai(n: usize, parent: impl Fn(usize) -> Option<usize>) -> String {
    let message = |at: usize| {
        let sender = if at.is_multiple_of(2) { "human" } else { "assistant" };
        let parent = parent(at).map_or_else(|| "null".to_owned(), |parent| format!(r#""n{parent}""#));
        format!(r#"{{"uuid":"n{at}","sender":"{sender}","text":"go","parent_message_uuid":{parent}}}"#)
    };
    format!(r#"{{"name":"t","chat_messages":[{}]}}"#, (0..n).map(message).collect::<Vec<_>>().join(","))
}
