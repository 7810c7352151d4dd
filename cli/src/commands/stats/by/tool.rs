//! Tokens that each tool brought into a conversation.

use std::collections::HashMap;

use epitome::core::message::{PartView, Parts as _};
use epitome::core::{Basis, TokenCounter, Tokens, count_part, measure_message};
use serde::Serialize;

use super::super::OneReport;
use super::super::session::Session;
use super::beside;
use crate::amount::{counted, grouped};
use crate::failure::Result;
use crate::report::share;
use crate::transcript::Transcript;
use crate::visible::line;

/// A conversation by its tools, the most expensive first.
#[derive(Debug, Serialize)]
pub(super) struct Tools {
    path: String,
    messages: u64,
    tokens: u64,
    token_basis: Basis,
    tokenizer: String,
    tools: Vec<Tool>,
    /// The other contents of a session file.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<Session>,
}

/// Calls and results of one tool. The name is `None` for results without a call.
#[derive(Debug, Default, Serialize)]
struct Tool {
    tool: Option<String>,
    calls: u64,
    results: u64,
    errors: u64,
    call_tokens: u64,
    result_tokens: u64,
    /// Tokens of the largest result.
    largest: u64,
    /// The message with the largest result, counted from 0.
    largest_message: Option<u64>,
}

/// Running counts of the tools.
#[derive(Debug, Default)]
struct Counts {
    rows: Vec<Tool>,
    names: HashMap<Option<String>, usize>,
    /// The row of each call, by its id. An id that is used again belongs to the later call.
    calls: HashMap<String, usize>,
}

impl Tools {
    pub(super) fn of(mut transcript: Transcript<'_>, counter: &dyn TokenCounter) -> Result<Self> {
        let session = Session::of(&transcript);
        let (mut tokens, mut basis, mut at) = (0, counter.basis(), 0);
        let mut counts = Counts::default();
        transcript.for_each(|message| {
            let amount = measure_message(message, counter);
            basis = basis.min(amount.basis);
            tokens += amount.tokens.as_u64();
            message.for_each_part(&mut |part| counts.add(part, count_part(part, counter), at));
            at += 1;
            Ok(())
        })?;
        let mut tools = counts.rows;
        tools.sort_by(|one, other| other.tokens().cmp(&one.tokens()).then_with(|| one.tool.cmp(&other.tool)));
        let path = transcript.pointer().to_owned();
        let tokenizer = counter.name().to_owned();
        Ok(Self { path, messages: at, tokens, token_basis: basis, tokenizer, tools, session })
    }
}

impl OneReport for Tools {
    fn path(&self) -> &str {
        &self.path
    }

    fn to_text(&self) -> String {
        let mut text = format!(
            "{}, {} ({} by {}), {} of them calls and results of {}",
            counted(self.messages, "message"),
            counted(self.tokens, "token"),
            self.token_basis.as_str(),
            self.tokenizer,
            share(self.tools.iter().map(Tool::tokens).sum(), self.tokens),
            counted(self.tools.len() as u64, "tool")
        );
        if !self.tools.is_empty() {
            text += &format!(
                "\n\n{:<24}{:>7}{:>8}{:>8}{:>12}{:>12}{:>8}{:>12}{:>9}",
                "tool", "calls", "results", "errors", "arguments", "results", "share", "largest", "message"
            );
        }
        for row in &self.tools {
            let name = row.tool.as_deref().map_or_else(|| "(no call)".to_owned(), line);
            text += &format!(
                "\n{name:<24}{:>7}{:>8}{:>8}{:>12}{:>12}{:>8}{:>12}{:>9}",
                grouped(row.calls),
                grouped(row.results),
                grouped(row.errors),
                grouped(row.call_tokens),
                grouped(row.result_tokens),
                share(row.tokens(), self.tokens),
                grouped(row.largest),
                row.largest_message.map_or_else(|| "-".to_owned(), grouped),
            );
        }
        text + &beside(self.session.as_ref())
    }
}

impl Counts {
    fn add(&mut self, part: PartView<'_>, tokens: Tokens, at: u64) {
        let tokens = tokens.as_u64();
        match part {
            PartView::ToolCall(call) => {
                let place = self.place(Some(call.name));
                self.calls.insert(call.id.to_owned(), place);
                if let Some(row) = self.rows.get_mut(place) {
                    row.calls += 1;
                    row.call_tokens += tokens;
                }
            }
            PartView::ToolResult(result) => {
                let known = self.calls.get(result.call_id).copied();
                let place = known.unwrap_or_else(|| self.place(None));
                if let Some(row) = self.rows.get_mut(place) {
                    row.results += 1;
                    row.errors += u64::from(result.is_error);
                    row.result_tokens += tokens;
                    if row.largest_message.is_none() || tokens > row.largest {
                        (row.largest, row.largest_message) = (tokens, Some(at));
                    }
                }
            }
            _ => {}
        }
    }

    fn place(&mut self, name: Option<&str>) -> usize {
        let name = name.map(str::to_owned);
        let next = self.rows.len();
        let place = *self.names.entry(name.clone()).or_insert(next);
        if place == next {
            self.rows.push(Tool { tool: name, ..Tool::default() });
        }
        place
    }
}

impl Tool {
    const fn tokens(&self) -> u64 {
        self.call_tokens + self.result_tokens
    }
}
