//! Requests and responses of the Messages API, as deep as compaction has to look. Everything else stays a slice of the text.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::string::String;
use std::vec::Vec;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::error::{MappingError, shape};

/// The members of a request.
#[derive(Deserialize)]
pub(super) struct Body<'a>(#[serde(borrow)] BTreeMap<Cow<'a, str>, &'a RawValue>);

impl<'a> Body<'a> {
    pub(super) fn of(text: &'a str) -> Result<Self, MappingError> {
        serde_json::from_str(text).map_err(|error| shape("a request (an object)", &error))
    }

    /// The value of a member that is there and not null.
    pub(super) fn get(&self, key: &str) -> Option<&'a str> {
        self.0.get(key).map(|value| value.get()).filter(|value| *value != "null")
    }

    pub(super) fn messages(&self) -> Result<Vec<Raw<'a>>, MappingError> {
        let raw = self.get("messages").unwrap_or_default();
        let list: Vec<&RawValue> =
            serde_json::from_str(raw).map_err(|error| shape("`messages` (an array)", &error))?;
        list.into_iter().map(|message| Raw::of(message.get())).collect()
    }

    /// The request with these members in place of those of the same names, or without them.
    pub(super) fn with(&self, changes: &[(&str, Option<&str>)]) -> String {
        let kept = self.0.iter().filter(|(key, _)| changes.iter().all(|(changed, _)| key != changed));
        let kept = kept.map(|(key, value)| (&**key, value.get()));
        let new = changes.iter().filter_map(|(key, value)| value.map(|value| (*key, value)));
        let mut out = String::from("{");
        for (key, value) in kept.chain(new) {
            if out.len() > 1 {
                out.push(',');
            }
            out.push_str(&quote(key));
            out.push(':');
            out.push_str(value);
        }
        out.push('}');
        out
    }
}

/// A message of a request.
pub(super) struct Raw<'a> {
    /// As it is written.
    pub(super) text: &'a str,
    pub(super) role: Cow<'a, str>,
    /// Its blocks; none if its content is one text.
    pub(super) blocks: Vec<Block<'a>>,
}

impl<'a> Raw<'a> {
    fn of(text: &'a str) -> Result<Self, MappingError> {
        let message: Message<'_> = serde_json::from_str(text)
            .map_err(|error| shape("a message with `role` and `content`", &error))?;
        let content = message.content.get();
        let blocks = if content.starts_with('"') { Vec::new() } else { blocks(content)? };
        Ok(Self { text, role: message.role, blocks })
    }

    /// Whether the user says something in it, beside what tools returned.
    pub(super) fn begins_turn(&self) -> bool {
        self.role == "user" && (self.blocks.is_empty() || self.blocks.iter().any(|block| !block.is_result()))
    }
}

/// A content block.
pub(super) struct Block<'a> {
    /// As it is written.
    pub(super) text: &'a str,
    pub(super) head: BlockHead<'a>,
}

impl<'a> Block<'a> {
    pub(super) fn of(text: &'a str) -> Result<Self, MappingError> {
        let head = serde_json::from_str(text).map_err(|error| shape("a block with `type`", &error))?;
        Ok(Self { text, head })
    }

    pub(super) fn is_result(&self) -> bool {
        self.head.kind == "tool_result"
    }

    /// Whether it is a compaction block with content. Without, it says nothing, and may stand anywhere.
    pub(super) fn is_summary(&self) -> bool {
        self.head.kind == "compaction" && self.head.content.is_some_and(|content| content.get() != "null")
    }

    pub(super) fn is_thinking(&self) -> bool {
        matches!(&*self.head.kind, "thinking" | "redacted_thinking")
    }
}

#[derive(Deserialize)]
pub(super) struct BlockHead<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) tool_use_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) signature: Option<Cow<'a, str>>,
}

/// The blocks that `content`, an array, is.
pub(super) fn blocks(content: &str) -> Result<Vec<Block<'_>>, MappingError> {
    let list: Vec<&RawValue> =
        serde_json::from_str(content).map_err(|error| shape("a text or a list of blocks", &error))?;
    list.into_iter().map(|raw| Block::of(raw.get())).collect()
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    role: Cow<'a, str>,
    #[serde(borrow)]
    content: &'a RawValue,
}

/// What matters of a response.
#[derive(Deserialize)]
pub(super) struct Response<'a> {
    #[serde(borrow)]
    pub(super) content: &'a RawValue,
    #[serde(borrow)]
    pub(super) stop_reason: Option<Cow<'a, str>>,
}

impl<'a> Response<'a> {
    pub(super) fn of(text: &'a str) -> Result<Self, MappingError> {
        serde_json::from_str(text).map_err(|error| shape("a response with `content`", &error))
    }
}

/// An array of these values.
pub(super) fn array<'t>(values: impl IntoIterator<Item = &'t str>) -> String {
    let mut out = String::from("[");
    for value in values {
        if out.len() > 1 {
            out.push(',');
        }
        out.push_str(value);
    }
    out.push(']');
    out
}

/// A JSON string that says `text`.
pub(super) fn quote(text: &str) -> String {
    use std::string::ToString as _;
    serde_json::Value::from(text).to_string()
}
