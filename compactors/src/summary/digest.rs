//! A summary without a model.

use std::boxed::Box;
use std::format;
use std::string::String;
use std::vec::Vec;

use async_trait::async_trait;
use epitome_core::Tokens;
use epitome_std::message::Message;
use epitome_std::models::Prices;

use super::text::without_calls;
use super::transcript::pieces_of;
use super::{Summarizer, SummaryError, SummaryRequest};

/// Writes a summary without a model: the beginnings of all messages, shortened to the allowed size.
///
/// If this is not enough, the oldest messages are left out, and the text contains their number. The text of the
/// summary before has up to half of the room. Use it if no model is available, or as a fallback: it has less
/// content than a summary by a model, at no cost.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "it has no parameters")]
pub struct DigestSummarizer;

/// Maximum bytes of a text at first: longer texts are cut.
const TEXT_BYTES_MAX: usize = 2_048;
/// Below this maximum, texts are not cut further: the oldest are left out instead.
const TEXT_BYTES_MIN: usize = 32;

#[async_trait]
impl Summarizer for DigestSummarizer {
    fn name(&self) -> &str {
        "digest"
    }

    async fn summarize(&self, request: &SummaryRequest<'_>) -> Result<String, SummaryError> {
        Ok(digest(request))
    }

    fn price(&self, _: &Prices, _: u64, _: u64, _: Option<u64>) -> u64 {
        0
    }
}

/// The digest for a request. It may exceed the allowance by one or two tokens, because adjacent pieces may form
/// other tokens.
pub(super) fn digest(request: &SummaryRequest<'_>) -> String {
    let count = |text: &str| request.counter.count(text);
    let previous = request.previous.map_or_else(String::new, |previous| {
        let half = Tokens(request.allowance.0 / 2);
        beginning(&without_calls(previous), half, &count)
    });
    let previous = if previous.is_empty() { previous } else { previous + "\n" };
    let room = Tokens(request.allowance.0.saturating_sub(count(&previous).0));
    let mut max = TEXT_BYTES_MAX;
    loop {
        let pieces = |group: &Vec<&Message>| -> Vec<String> {
            pieces_of(group, max).iter().map(|piece| without_calls(piece)).collect()
        };
        let groups: Vec<Vec<String>> = request.groups.iter().map(pieces).collect();
        let all: String = groups.iter().flatten().map(String::as_str).collect();
        if count(&all) <= room {
            return previous + &all;
        }
        if max < TEXT_BYTES_MIN {
            return previous + &newest(&groups, room, &count);
        }
        max /= 2;
    }
}

/// The first lines of a text that fit into `room`.
fn beginning(text: &str, room: Tokens, count: &dyn Fn(&str) -> Tokens) -> String {
    let (mut end, mut left) = (0_usize, room.0);
    for line in text.split_inclusive('\n') {
        let Some(rest) = left.checked_sub(count(line).0) else { break };
        left = rest;
        end = end.saturating_add(line.len());
    }
    text.get(..end).unwrap_or_default().trim_end().into()
}

/// The last groups that fit, and the number of groups left out. Of the group before them the last pieces stay,
/// because a group may hold hundreds of calls.
fn newest(groups: &[Vec<String>], room: Tokens, count: &dyn Fn(&str) -> Tokens) -> String {
    let longest = left_out(groups.len(), true);
    let mut left = room.0.saturating_sub(count(&longest).0);
    let mut fitting = |tokens: Tokens| match left.checked_sub(tokens.0) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    };
    let whole = |group: &&Vec<String>| {
        fitting(group.iter().map(|piece| count(piece)).fold(Tokens(0), Tokens::saturating_add))
    };
    let groups_left_out = groups.len().saturating_sub(groups.iter().rev().take_while(whole).count());
    let (before, whole) = groups.split_at(groups_left_out);
    let pieces = before.last().map_or(&[][..], Vec::as_slice);
    let from =
        pieces.len().saturating_sub(pieces.iter().rev().take_while(|piece| fitting(count(piece))).count());
    let part = pieces.get(from..).unwrap_or_default();
    let said = match part {
        [] => left_out(groups_left_out, false),
        _ => left_out(groups_left_out.saturating_sub(1), true),
    };
    // If not even this line fits, the shortest note.
    if count(&said) > room {
        return LEFT_OUT.into();
    }
    said + &part.concat() + &whole.iter().flatten().map(String::as_str).collect::<String>()
}

/// The line about missing content: this number of groups, and with `part` the beginning of another one.
fn left_out(groups: usize, part: bool) -> String {
    match (groups, part) {
        (_, false) => format!("[{groups} earlier exchanges left out]\n"),
        (0, true) => "[earlier calls and results left out]\n".into(),
        (_, true) => format!("[{groups} earlier exchanges and the beginning of the next left out]\n"),
    }
}

/// The note if nothing else fits.
pub(super) const LEFT_OUT: &str = "[left out]";
