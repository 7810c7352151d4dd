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

/// Writes the beginnings of everything that was said, shortened until it has the size that it may have; where that is not
/// enough, the oldest messages are left out, and it says how many. What the summary before said has up to half of the room.
/// No model is asked.
///
/// It says less than a model would, at no cost: use it where none is at hand, or after one has failed.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "it has no parameters")]
pub struct DigestSummarizer;

/// Texts of more than this are cut from the beginning.
const TEXT_BYTES_MAX: usize = 2_048;
/// Texts are not cut to less than this.
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

/// The digest of what is asked for; of its allowance it may miss a token or two, where neighbours make one together.
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

/// The last groups, as many as there is room for, and how many are not among them. Of the one before them the last pieces
/// stay: a group may hold hundreds of calls.
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
    // Where not even that has room, the least that says so.
    if count(&said) > room {
        return LEFT_OUT.into();
    }
    said + &part.concat() + &whole.iter().flatten().map(String::as_str).collect::<String>()
}

/// Says what is not there: so many groups, and with `part` the beginning of another.
fn left_out(groups: usize, part: bool) -> String {
    match (groups, part) {
        (_, false) => format!("[{groups} earlier exchanges left out]\n"),
        (0, true) => "[earlier calls and results left out]\n".into(),
        (_, true) => format!("[{groups} earlier exchanges and the beginning of the next left out]\n"),
    }
}

/// Is said where there is room for nothing else.
pub(super) const LEFT_OUT: &str = "[left out]";
