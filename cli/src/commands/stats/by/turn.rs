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

/// A conversation by its turns, in the order of events: the oldest first.
#[derive(Debug, Serialize)]
pub(super) struct Turns {
    path: String,
    messages: u64,
    tokens: u64,
    token_basis: Basis,
    tokenizer: String,
    turns: Vec<Turn>,
    /// The other contents of a session file.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<Session>,
}

/// One turn; turn 0 has all messages before the first request.
#[derive(Debug, Default, Clone, Serialize)]
struct Turn {
    turn: u32,
    /// The first message of the turn, counted from 0.
    first_message: u64,
    messages: u64,
    calls: u64,
    /// Tokens that the turn adds to the conversation.
    tokens_added: u64,
    /// Tokens of the conversation up to the end of the turn.
    tokens_total: u64,
    /// Input of the last response in the turn, with instructions and tools, as reported by the provider.
    reported_input: Option<u64>,
    /// Share of the inputs of the turn's responses that came from the provider's cache.
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
            // Turn 0 has the instructions before the first turn.
            counted(self.turns.iter().filter(|row| row.turn > 0).count() as u64, "turn"),
            counted(self.tokens, "token"),
            self.token_basis.as_str(),
            self.tokenizer
        );
        // Reports of the provider include the effect of compactions; a sum does not.
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

/// The position of the row of the turn of message `at`. A late answer belongs to an earlier turn.
fn place(turns: &mut Vec<Turn>, turn: u32, at: u64) -> usize {
    turns.binary_search_by_key(&turn, |row| row.turn).unwrap_or_else(|place| {
        turns.insert(place, Turn { turn, first_message: at, ..Turn::default() });
        place
    })
}
