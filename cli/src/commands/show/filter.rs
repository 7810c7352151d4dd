//! The filter of the shown messages.

use epitome::message::{Message, Part};
use regex::Regex;
use serde_json::Value;

use super::message::Shown;
use crate::args::ShowArgs;

/// Conditions on a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Filter<'a> {
    turn: Option<u32>,
    grep: Option<&'a Regex>,
}

impl<'a> Filter<'a> {
    pub(super) const fn new(args: &'a ShowArgs) -> Self {
        Self { turn: args.turn, grep: args.grep.as_ref() }
    }

    pub(super) fn takes(self, shown: &Shown) -> bool {
        self.turn.is_none_or(|turn| turn == shown.turn)
            && self.grep.is_none_or(|grep| matches(grep, &shown.message))
    }

    pub(super) const fn turn(self) -> Option<u32> {
        self.turn
    }

    /// Whether the filter searches for words.
    pub(super) const fn is_search(self) -> bool {
        self.grep.is_some()
    }

    /// Whether the filter takes every message.
    pub(super) const fn is_open(self) -> bool {
        self.turn.is_none() && self.grep.is_none()
    }
}

fn matches(grep: &Regex, message: &Message) -> bool {
    message.name().is_some_and(|name| grep.is_match(name))
        || message.parts().iter().any(|part| part_matches(grep, part))
}

fn part_matches(grep: &Regex, part: &Part) -> bool {
    let any = |texts: &[&str]| texts.iter().any(|text| grep.is_match(text));
    match part {
        Part::Text(text) => any(&[text]),
        Part::Reasoning(reasoning) => any(&[&reasoning.text]),
        Part::ToolCall(call) => {
            any(&[&call.id, &call.name, &call.arguments]) || json_matches(grep, &call.arguments)
        }
        Part::ToolResult(result) => {
            any(&[&result.call_id]) || result.parts.iter().any(|part| part_matches(grep, part))
        }
        Part::Media(media) => any(&[&media.mime]),
        Part::ApprovalRequest(asked) => any(&[&asked.id, &asked.call_id]),
        Part::ApprovalResponse(answer) => any(&[&answer.approval.id, &answer.approval.call_id]),
        Part::Compaction(left) => any(&[&left.provider, &left.text]),
        Part::Unknown(unknown) => any(&[&unknown.kind, &unknown.raw]),
    }
}

/// Whether a string in this JSON, without escapes, matches; false if the text is no JSON.
fn json_matches(grep: &Regex, json: &str) -> bool {
    fn matches(grep: &Regex, value: &Value) -> bool {
        match value {
            Value::String(text) => grep.is_match(text),
            Value::Array(items) => items.iter().any(|item| matches(grep, item)),
            Value::Object(members) => members.values().any(|member| matches(grep, member)),
            _ => false,
        }
    }
    // serde_json limits the depth to 128, and with it this recursion.
    serde_json::from_str(json).is_ok_and(|value| matches(grep, &value))
}

#[cfg(test)]
mod tests {
    use epitome::core::message::Role;
    use epitome::message::{ToolCall, ToolResult};

    use super::*;

    #[test]
    fn every_text_of_a_message_is_searched() {
        let call = ToolCall::new("call-id", "tool-name", r#"{"command": ["first\tword"]}"#);
        let result = ToolResult::new("result-id", vec![Part::Text("output".into())]);
        let parts = vec![Part::Text("said".into()), Part::ToolCall(call), Part::ToolResult(result)];
        let message = Message::new(Role::Assistant, parts).with_name("speaker");
        for wanted in
            ["said", "call-id", "tool-name", "command", "^first\tword$", "result-id", "output", "^speaker$"]
        {
            assert!(matches(&Regex::new(wanted).unwrap(), &message), "{wanted}");
        }
        assert!(!matches(&Regex::new("absent").unwrap(), &message));
    }
}
