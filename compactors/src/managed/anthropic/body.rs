//! Requests and responses of the Messages API, parsed as deep as compaction needs. All other content stays a slice
//! of the text.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::string::String;
use std::vec::Vec;

use epitome_std::wire::WireError;
use epitome_std::wire::document::{elements_and_fields, fields, members};

use super::super::value::{optional_text, present, text};
use super::error::{MappingError, misshapen};

/// The members of a request.
pub(super) struct Body<'a>(BTreeMap<Cow<'a, str>, &'a str>);

impl<'a> Body<'a> {
    pub(super) fn of(text: &'a str) -> Result<Self, MappingError> {
        let (mut found, mut twice) = (BTreeMap::new(), false);
        let done = members(text, |key, value| {
            twice |= found.insert(key, value).is_some();
            Ok(())
        });
        match done {
            Ok(()) if twice => {
                Err(MappingError::Shape { expected: "each key of a request once", line: 1, column: 1 })
            }
            Ok(()) => Ok(Self(found)),
            Err(error) => Err(misshapen("a request (an object)", text, &error)),
        }
    }

    /// The value of a member that is present and not null.
    pub(super) fn get(&self, key: &str) -> Option<&'a str> {
        present(self.0.get(key).copied())
    }

    pub(super) fn messages(&self) -> Result<Vec<Raw<'a>>, MappingError> {
        let list = self.get("messages").unwrap_or_default();
        let messages = elements_and_fields(list, &["role", "content"])
            .map_err(|error| misshapen("`messages` (an array)", list, &error))?;
        messages.into_iter().map(|(text, fields)| Raw::of(text, fields)).collect()
    }

    /// The request with these members set, or removed where the value is `None`.
    pub(super) fn with(&self, changes: &[(&str, Option<&str>)]) -> String {
        let kept = self.0.iter().filter(|(key, _)| changes.iter().all(|(changed, _)| key != changed));
        let kept = kept.map(|(key, value)| (&**key, *value));
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
    /// JSON of the message, unchanged.
    pub(super) text: &'a str,
    pub(super) role: Cow<'a, str>,
    /// Its blocks; none if its content is one text.
    pub(super) blocks: Vec<Block<'a>>,
}

impl<'a> Raw<'a> {
    fn of(raw: &'a str, fields: Result<[Option<&'a str>; 2], WireError>) -> Result<Self, MappingError> {
        let shape = || MappingError::Shape { expected: A_MESSAGE, line: 1, column: 1 };
        let fields = fields.map_err(|error| misshapen(A_MESSAGE, raw, &error))?;
        let [Some(role), Some(content)] = fields else { return Err(shape()) };
        let role = text(role).ok_or_else(shape)?;
        let blocks = if content.starts_with('"') { Vec::new() } else { blocks(content)? };
        Ok(Self { text: raw, role, blocks })
    }

    /// Whether the message has user content other than tool results.
    pub(super) fn begins_turn(&self) -> bool {
        self.role == "user" && (self.blocks.is_empty() || self.blocks.iter().any(|block| !block.is_result()))
    }
}

/// A content block.
pub(super) struct Block<'a> {
    /// JSON of the block, unchanged.
    pub(super) text: &'a str,
    pub(super) head: BlockHead<'a>,
}

impl<'a> Block<'a> {
    fn of(text: &'a str, fields: Result<[Option<&'a str>; 5], WireError>) -> Result<Self, MappingError> {
        let fields = fields.map_err(|error| misshapen(A_BLOCK, text, &error))?;
        let head =
            BlockHead::of(fields).ok_or(MappingError::Shape { expected: A_BLOCK, line: 1, column: 1 })?;
        Ok(Self { text, head })
    }

    /// Reads the JSON `text` of one block.
    pub(super) fn alone(text: &'a str) -> Result<Self, MappingError> {
        Self::of(text, fields(text, &HEAD))
    }

    pub(super) fn is_result(&self) -> bool {
        self.head.kind == "tool_result"
    }

    /// Whether it is a compaction block with content. A block without content is empty, and may be anywhere.
    pub(super) fn is_summary(&self) -> bool {
        self.head.kind == "compaction" && self.head.content.is_some()
    }

    pub(super) fn is_thinking(&self) -> bool {
        matches!(&*self.head.kind, "thinking" | "redacted_thinking")
    }
}

pub(super) struct BlockHead<'a> {
    pub(super) kind: Cow<'a, str>,
    pub(super) id: Option<Cow<'a, str>>,
    pub(super) tool_use_id: Option<Cow<'a, str>>,
    /// JSON of the content, unchanged.
    pub(super) content: Option<&'a str>,
    pub(super) signature: Option<Cow<'a, str>>,
}

/// The keys of [`BlockHead`], in their order.
const HEAD: [&str; 5] = ["type", "id", "tool_use_id", "content", "signature"];

impl<'a> BlockHead<'a> {
    /// `None` if a value is no text that should be one.
    fn of([kind, id, tool_use_id, content, signature]: [Option<&'a str>; 5]) -> Option<Self> {
        Some(Self {
            kind: text(kind?)?,
            id: optional_text(id).ok()?,
            tool_use_id: optional_text(tool_use_id).ok()?,
            content: present(content),
            signature: optional_text(signature).ok()?,
        })
    }
}

/// The blocks of `content`, a JSON array.
pub(super) fn blocks(content: &str) -> Result<Vec<Block<'_>>, MappingError> {
    let list = elements_and_fields(content, &HEAD)
        .map_err(|error| misshapen("a text or a list of blocks", content, &error))?;
    list.into_iter().map(|(text, fields)| Block::of(text, fields)).collect()
}

/// The fields of a response that compaction needs.
pub(super) struct Response<'a> {
    /// JSON of the content, unchanged.
    pub(super) content: &'a str,
    pub(super) stop_reason: Option<Cow<'a, str>>,
}

impl<'a> Response<'a> {
    pub(super) fn of(text: &'a str) -> Result<Self, MappingError> {
        let expected = "a response with `content`";
        let found = fields(text, &["content", "stop_reason"]);
        let [content, reason] = found.map_err(|error| misshapen(expected, text, &error))?;
        let (Some(content), Ok(stop_reason)) = (content, optional_text(reason)) else {
            return Err(MappingError::Shape { expected, line: 1, column: 1 });
        };
        Ok(Self { content, stop_reason })
    }
}

const A_MESSAGE: &str = "a message with `role` and `content`";
const A_BLOCK: &str = "a block with `type`";

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

/// The JSON string of `text`.
pub(super) fn quote(text: &str) -> String {
    use std::string::ToString as _;
    serde_json::Value::from(text).to_string()
}
