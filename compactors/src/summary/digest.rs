//! A summary without a model.

use std::boxed::Box;
use std::format;
use std::string::String;
use std::vec::Vec;

use async_trait::async_trait;
use epitome_core::Tokens;

use super::text::without_calls;
use super::transcript::write_group;
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
        let count = |text: &str| request.counter.count(text);
        let previous = request.previous.map_or_else(String::new, |previous| {
            let half = Tokens(request.allowance.0 / 2);
            format!("{}\n", beginning(&without_calls(previous), half, &|text| count(text)))
        });
        let room = Tokens(request.allowance.0.saturating_sub(count(&previous).0));
        let mut max = TEXT_BYTES_MAX;
        loop {
            let groups = request.groups.iter().map(|group| {
                let mut text = String::new();
                write_group(group, max, &mut text);
                without_calls(&text)
            });
            let groups: Vec<String> = groups.collect();
            let all = groups.concat();
            if count(&all) <= room {
                return Ok(previous + &all);
            }
            if max < TEXT_BYTES_MIN {
                return Ok(previous + &newest(&groups, room, &|text| count(text)));
            }
            max /= 2;
        }
    }
}

/// As many of the first lines as there is room for.
fn beginning(text: &str, room: Tokens, count: &dyn Fn(&str) -> Tokens) -> String {
    let (mut end, mut left) = (0_usize, room.0);
    for line in text.split_inclusive('\n') {
        let Some(rest) = left.checked_sub(count(line).0) else { break };
        left = rest;
        end = end.saturating_add(line.len());
    }
    text.get(..end).unwrap_or_default().trim_end().into()
}

/// The last groups, as many as there is room for, and how many are not among them.
fn newest(groups: &[String], room: Tokens, count: &dyn Fn(&str) -> Tokens) -> String {
    let said = |left_out: usize| format!("[{left_out} earlier exchanges left out]\n");
    let mut left = room.0.saturating_sub(count(&said(groups.len())).0);
    let mut first = groups.len();
    for (at, group) in groups.iter().enumerate().rev() {
        let Some(rest) = left.checked_sub(count(group).0) else { break };
        (left, first) = (rest, at);
    }
    said(first) + &groups.get(first..).unwrap_or_default().concat()
}
