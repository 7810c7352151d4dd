//! Growth of a conversation, turn by turn.

use epitome::core::message::{PartView, Parts as _};
use epitome::core::{Basis, TokenCounter, measure_message};
use epitome::wire::UsageEntry;
use serde::Serialize;

use super::super::OneReport;
use super::super::session::Session;
use super::beside;
use crate::amount::{counted, grouped};
use crate::failure::Result;
use crate::report::{Picture, share};
use crate::scan::{self, Groups};
use crate::transcript::Transcript;

/// A conversation by its turns, the oldest first: in the order in which a reader asks what happened.
#[derive(Debug, Serialize)]
pub(super) struct Turns {
    path: String,
    messages: u64,
    tokens: u64,
    token_basis: Basis,
    tokenizer: String,
    turns: Vec<Turn>,
    /// The rest of a session file.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<Session>,
}

/// One turn; turn 0 is all before the first request.
#[derive(Debug, Default, Clone, Serialize)]
struct Turn {
    turn: u32,
    /// Its first message, counted from 0.
    first_message: u64,
    messages: u64,
    calls: u64,
    /// Tokens that it adds to the conversation.
    tokens_added: u64,
    /// The conversation with it and all before it.
    tokens_total: u64,
    /// The input of the last response in it, instructions and tools included, as the provider reported.
    reported_input: Option<u64>,
    /// Share of its responses' inputs that came from the provider's cache.
    cached_percent: Option<f64>,
    #[serde(skip)]
    input: u64,
    #[serde(skip)]
    cached: u64,
}

impl Turns {
    pub(super) fn of(mut transcript: Transcript<'_>, counter: &dyn TokenCounter) -> Result<Self> {
        let session = Session::of(&transcript);
        let usage = transcript.usage()?;
        let mut reports = usage.iter().peekable();
        let (mut index, mut turns, mut at) = (Groups::new(), Vec::<Turn>::new(), 0);
        let (mut tokens, mut basis) = (0, counter.basis());
        transcript.for_each(|message| {
            let amount = measure_message(message, counter);
            basis = basis.min(amount.basis);
            tokens += amount.tokens.as_u64();
            let turn = scan::place(&mut index, message, amount.tokens)?.turn.0;
            let place = place(&mut turns, turn, at);
            let Some(row) = turns.get_mut(place) else { return Ok(()) };
            row.messages += 1;
            row.tokens_added += amount.tokens.as_u64();
            message.for_each_part(&mut |part| row.calls += u64::from(matches!(part, PartView::ToolCall(_))));
            while let Some(report) = reports.next_if(|report| report.at as u64 <= at) {
                row.report(report);
            }
            at += 1;
            Ok(())
        })?;
        let mut total = 0;
        for row in &mut turns {
            total += row.tokens_added;
            row.tokens_total = total;
        }
        let path = transcript.pointer().to_owned();
        let tokenizer = counter.name().to_owned();
        Ok(Self { path, messages: at, tokens, token_basis: basis, tokenizer, turns, session })
    }
}

impl OneReport for Turns {
    fn path(&self) -> &str {
        &self.path
    }

    fn to_text(&self) -> String {
        let mut text = format!(
            "{} in {}, {} ({} by {})\n\n",
            counted(self.messages, "message"),
            // The row of turn 0 is for instructions before the first turn.
            counted(self.turns.iter().filter(|row| row.turn > 0).count() as u64, "turn"),
            counted(self.tokens, "token"),
            self.token_basis.as_str(),
            self.tokenizer
        );
        // The provider's reports know of compactions; a sum does not.
        let sizes = self.turns.iter().map(|turn| turn.reported_input.unwrap_or(turn.tokens_total));
        if let Some(bars) = Picture::for_stdout().bars(&sizes.collect::<Vec<_>>()) {
            text += &format!("{bars}\nthe size of the context, turn by turn\n\n");
        }
        text += &format!(
            "{:>5}{:>10}{:>10}{:>7}{:>11}{:>8}{:>11}{:>11}{:>9}",
            "turn", "from", "messages", "calls", "added", "share", "total", "reported", "cached"
        );
        for row in &self.turns {
            let reported = row.reported_input.map_or_else(|| "-".to_owned(), grouped);
            let cached =
                row.cached_percent.map_or_else(|| "-".to_owned(), |percent| format!("{percent:.0} %"));
            text += &format!(
                "\n{:>5}{:>10}{:>10}{:>7}{:>11}{:>8}{:>11}{reported:>11}{cached:>9}",
                row.turn,
                grouped(row.first_message),
                grouped(row.messages),
                grouped(row.calls),
                grouped(row.tokens_added),
                share(row.tokens_added, self.tokens),
                grouped(row.tokens_total),
            );
        }
        text + &beside(self.session.as_ref())
    }
}

impl Turn {
    fn report(&mut self, report: &UsageEntry) {
        let Some(input) = report.usage.input_total else { return };
        self.reported_input = Some(input);
        if let Some(cached) = report.usage.cache_read {
            self.input += input;
            self.cached += cached;
            let percent = if self.input == 0 { 0.0 } else { self.cached as f64 / self.input as f64 * 100.0 };
            self.cached_percent = Some((percent * 10.0).round() / 10.0);
        }
    }
}

/// The place of a turn's row, to which the message `at` belongs. A late answer belongs to an earlier one.
fn place(turns: &mut Vec<Turn>, turn: u32, at: u64) -> usize {
    turns.binary_search_by_key(&turn, |row| row.turn).unwrap_or_else(|place| {
        turns.insert(place, Turn { turn, first_message: at, ..Turn::default() });
        place
    })
}
