//! What the user said, behind which a compaction stands.

use std::string::String;
use std::vec::Vec;

use epitome_core::message::{PartView, Role, UnknownView};
use epitome_core::{ClassEstimator, count_part};
use epitome_std::message::{Message, Part, UnknownPart};
use epitome_std::wire::{Format, convert};
use serde_json::Value;

/// How much of what the user said is sent on, the newest first, where the client decides. Source: Codex
/// (`RETAINED_MESSAGE_TOKEN_BUDGET`).
const RETAINED_TOKENS_MAX: u64 = 64_000;

/// A message of the user, as an item of its own.
#[derive(Debug, Clone)]
pub(super) struct Said {
    raw: String,
    key: (String, usize),
}

impl Said {
    /// What a message of the user says, images and files too; none if the format has no form for any of it.
    fn of(message: &Message) -> Option<Self> {
        let is_said = |part: &&Part| matches!(part, Part::Text(_) | Part::Media(_));
        let parts: Vec<Part> = message.parts().iter().filter(is_said).cloned().collect();
        if parts.is_empty() {
            return None;
        }
        let written = convert([&Message::new(Role::User, parts)], Format::OpenaiResponses).ok()?.text;
        Self::of_item(written.strip_prefix(r#"{"input":["#)?.strip_suffix("]}")?)
    }

    /// What the user said in an item that stands before an earlier compaction.
    fn of_part(part: &Part) -> Option<Self> {
        let Part::Unknown(item) = part else { return None };
        if item.format != Format::OpenaiResponses.as_str() || item.kind != ITEM {
            return None;
        }
        Self::of_item(&item.raw)
    }

    fn of_item(raw: &str) -> Option<Self> {
        let item: Value = serde_json::from_str(raw).ok()?;
        let content = item.get("content")?.as_array()?;
        let texts: Vec<&str> = content.iter().filter_map(|part| part.get("text")?.as_str()).collect();
        let others = content.len().saturating_sub(texts.len());
        let key = (texts.join("\n\n"), others);
        (key != (String::new(), 0)).then(|| Self { raw: raw.into(), key })
    }

    /// Whether both say the same. The service writes images in its own way, and so they are only counted.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.key == other.key
    }

    pub(super) fn into_part(self) -> Part {
        Part::Unknown(UnknownPart::new(Format::OpenaiResponses.as_str(), ITEM, self.raw))
    }

    fn tokens(&self) -> u64 {
        let view = UnknownView::new(Format::OpenaiResponses.as_str(), ITEM, &self.raw);
        count_part(PartView::Unknown(view), &ClassEstimator::new()).as_u64()
    }
}

/// What the user said in these messages, in order; also what stands before an earlier compaction.
pub(super) fn said(messages: &[Message]) -> Vec<Said> {
    messages.iter().flat_map(said_in).collect()
}

fn said_in(message: &Message) -> Vec<Said> {
    match message.role() {
        Role::User => Said::of(message).into_iter().collect(),
        Role::Assistant => message.parts().iter().filter_map(Said::of_part).collect(),
        _ => Vec::new(),
    }
}

/// What an item is called that is a message.
const ITEM: &str = "message";

/// The newest of these that are not too much together, in order.
pub(super) fn newest(said: Vec<Said>) -> Vec<Said> {
    let mut left = RETAINED_TOKENS_MAX;
    let fits = |said: &&Said| match left.checked_sub(said.tokens()) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    };
    let newest = said.iter().rev().take_while(fits).count();
    let skipped = said.len().saturating_sub(newest);
    said.into_iter().skip(skipped).collect()
}
