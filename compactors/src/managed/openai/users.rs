//! Messages of the user before a compaction.

use std::format;
use std::string::{String, ToString as _};
use std::vec::Vec;

use epitome_core::message::{PartView, Role, UnknownView};
use epitome_core::{ClassEstimator, count_part};
use epitome_std::message::{Message, Part, UnknownPart};
use epitome_std::wire::document::{elements_and_fields, fields};
use epitome_std::wire::{Format, WireError, convert};
use serde_json::Value;

use super::super::value::text;

/// Maximum tokens of the user's messages that the client adds before an item, the newest first. Source: Codex
/// (`RETAINED_MESSAGE_TOKEN_BUDGET`).
const RETAINED_TOKENS_MAX: u64 = 64_000;

/// A message of the user, as a separate item.
#[derive(Debug, Clone)]
pub(super) struct Said(String);

impl Said {
    /// The items of these messages of the user. They are written together, because there may be many.
    fn all(messages: &[Message]) -> Vec<Self> {
        let written =
            convert(messages, Format::OpenaiResponses).map(|written| written.text).unwrap_or_default();
        let list = written.strip_prefix(r#"{"input":"#).and_then(|list| list.strip_suffix('}'));
        let items = list.and_then(|list| elements_and_fields(list, &["content"]).ok()).unwrap_or_default();
        items.into_iter().filter_map(|(raw, fields)| Self::of(raw, fields)).collect()
    }

    /// The message of the user in an item before an earlier compaction.
    fn of_part(part: &Part) -> Option<Self> {
        let Part::Unknown(item) = part else { return None };
        if item.format != Format::OpenaiResponses.as_str() || item.kind != ITEM {
            return None;
        }
        Self::of_item(&item.raw)
    }

    fn of_item(raw: &str) -> Option<Self> {
        Self::of(raw, fields(raw, &["content"]))
    }

    fn of(raw: &str, fields: Result<[Option<&str>; 1], WireError>) -> Option<Self> {
        words(fields).is_some_and(|words| words != (String::new(), 0)).then(|| Self(raw.into()))
    }

    /// The texts, and the number of other parts, to compare two messages. The service changes the form of images,
    /// and so they are only counted.
    pub(super) fn words(&self) -> Option<(String, usize)> {
        words(fields(&self.0, &["content"]))
    }

    pub(super) fn into_part(self) -> Part {
        Part::Unknown(UnknownPart::new(Format::OpenaiResponses.as_str(), ITEM, self.0))
    }

    pub(super) fn tokens(&self) -> u64 {
        let view = UnknownView::new(Format::OpenaiResponses.as_str(), ITEM, &self.0);
        count_part(PartView::Unknown(view), &ClassEstimator::new()).as_u64()
    }
}

/// The messages of the user among these, in order. Those before an earlier compaction are included.
pub(super) fn said<'m>(messages: impl IntoIterator<Item = &'m Message>) -> Vec<Said> {
    let (mut found, mut run) = (Vec::new(), Vec::new());
    for message in messages {
        match message.role() {
            Role::User => run.extend(spoken(message)),
            Role::Assistant => {
                let mut before = message.parts().iter().filter_map(Said::of_part).peekable();
                if before.peek().is_some() {
                    found.extend(Said::all(&core::mem::take(&mut run)));
                }
                found.extend(before);
            }
            _ => {}
        }
    }
    found.extend(Said::all(&run));
    found
}

/// The texts in an item with this content, and the number of its other parts.
fn words(fields: Result<[Option<&str>; 1], WireError>) -> Option<(String, usize)> {
    let [content] = fields.ok()?;
    let content = elements_and_fields(content?, &["text"]).ok()?;
    let texts = content.iter().filter_map(|(_, fields)| match fields {
        Ok([Some(raw)]) => text(raw),
        _ => None,
    });
    let texts: Vec<_> = texts.collect();
    Some((texts.join("\n\n"), content.len().saturating_sub(texts.len())))
}

/// Texts, images and files of a user's message, without its other parts.
fn spoken(message: &Message) -> Option<Message> {
    let is_said = |part: &&Part| matches!(part, Part::Text(_) | Part::Media(_));
    let parts: Vec<Part> = message.parts().iter().filter(is_said).cloned().collect();
    (!parts.is_empty()).then(|| Message::new(Role::User, parts))
}

/// The type of an item that is a message.
const ITEM: &str = "message";

/// The newest of these messages that fit the limit together, in order. The first message that no longer fits loses
/// the middle of its text; its images stay. Source: Codex (`build_compacted_history` and `truncate_middle`).
pub(super) fn newest(said: Vec<Said>) -> Vec<Said> {
    let (mut left, mut newest) = (RETAINED_TOKENS_MAX, Vec::new());
    for said in said.into_iter().rev() {
        match left.checked_sub(said.tokens()) {
            Some(rest) => left = rest,
            None => {
                newest.extend(said.shortened(left));
                break;
            }
        }
        newest.push(said);
    }
    newest.reverse();
    newest
}

impl Said {
    /// The message with shortened text, so that it has at most `tokens`; `None` if even its other parts do not fit.
    fn shortened(&self, tokens: u64) -> Option<Self> {
        let item: Value = serde_json::from_str(&self.0).ok()?;
        let bytes = texts_of(&item).map(str::len).sum::<usize>();
        let fitting =
            |kept| Self::of_item(&with_text(&item, kept)?.to_string()).filter(|it| it.tokens() <= tokens);
        // Less text has no more tokens, within the accuracy of an estimate. A binary search finds the largest text
        // that fits.
        let (mut fits, mut too_much) = (None, bytes);
        let mut at = too_much / 2;
        while at > 0 {
            match fitting(at) {
                Some(said) => fits = Some((at, said)),
                None => too_much = at,
            }
            let least = fits.as_ref().map_or(0, |(at, _)| *at);
            let next = least.saturating_add(too_much.saturating_sub(least) / 2);
            if next == least {
                break;
            }
            at = next;
        }
        fits.map(|(_, said)| said)
    }
}

fn texts_of(item: &Value) -> impl Iterator<Item = &str> {
    let content = item.get("content").and_then(Value::as_array).into_iter().flatten();
    content.filter_map(|part| part.get("text")?.as_str())
}

/// The item with about the first `kept` bytes of its texts. The text at this limit keeps both its ends.
fn with_text(item: &Value, mut kept: usize) -> Option<Value> {
    let mut item = item.clone();
    item.get_mut("content")?.as_array_mut()?.retain_mut(|part| {
        let Some(Value::String(text)) = part.get_mut("text") else { return true };
        let (had, room) = (text.len(), kept);
        kept = kept.saturating_sub(had);
        if had > room {
            *text = without_middle(text, room);
        }
        room > 0
    });
    Some(item)
}

/// Both ends of a text, at most `kept` bytes. Between them is the number of missing tokens, at four bytes a token,
/// in the words of Codex.
fn without_middle(text: &str, kept: usize) -> String {
    let head = text.floor_char_boundary(kept / 2);
    let tail = text.ceil_char_boundary(text.len().saturating_sub(kept.saturating_sub(kept / 2)));
    let missing = tail.saturating_sub(head).div_ceil(BYTES_PER_TOKEN);
    let [head, tail] = [text.get(..head), text.get(tail..)].map(Option::unwrap_or_default);
    format!("{head}…{missing} tokens truncated…{tail}")
}

/// Bytes of a token, as Codex estimates them.
const BYTES_PER_TOKEN: usize = 4;
