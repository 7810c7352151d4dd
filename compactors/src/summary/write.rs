//! From a gap in a plan to its text.

use core::fmt;
use core::panic::AssertUnwindSafe;
use core::pin::pin;
use core::time::Duration;
use std::string::String;
use std::vec::Vec;

use epitome_core::{SummaryGap, TokenCounter, Tokens, Writer, measure_message};
use epitome_std::compaction::{Costs, LiveRequest};
use epitome_std::history::{Handles, History};
use epitome_std::message::Message;
use futures::FutureExt as _;
use futures::future::{Either, select};

use super::digest::{LEFT_OUT, digest};
use super::handle::{Handle, Numbers};
use super::quotes::Quotes;
use super::span::{Covered, Gone, covered, gone, is_answered};
use super::text::SummaryText;
use super::{Summarizer, SummaryError, SummaryRequest, checked};

/// Writes the summaries of a plan: a header, the prose of a [`Summarizer`], and the lines that need no model.
///
/// Use it for messages without a history. An [`Engine`](crate::Engine) calls it for the histories that it compacts.
///
/// ```
/// use epitome_compactors::{DigestSummarizer, Summarization, SummaryWriter};
/// use epitome_core::{
///     Budget, ClassEstimator, IndexBuf, OpenCallTree, Outcome, Pass, Planner, Span, count_message,
/// };
/// use epitome_std::message::Message;
///
/// let counter = ClassEstimator::new();
/// let said = |turn: usize| [format!("And part {turn}?"), "It is as it should be. ".repeat(30)];
/// let messages: Vec<_> =
///     (0..9).flat_map(said).enumerate().map(|(at, text)| if at % 2 == 0 { Message::user(text) } else { Message::assistant(text) }).collect();
/// let mut index = IndexBuf::<Vec<Span>, OpenCallTree>::new();
/// for message in &messages {
///     index.push(message, count_message(message, &counter))?;
/// }
/// let mut planner = Planner::new();
/// let budget = Budget::builder().window(4_000).trigger(2_000).without_goal().build()?;
/// let strategy = Summarization::new();
/// let Outcome::Planned(plan) = planner.plan(index.view(), &budget, Pass::Manual, &strategy)? else { unreachable!() };
/// let gap = plan.summaries().next().unwrap();
/// let writer = SummaryWriter::new(&counter).with_summarizer(Some(&DigestSummarizer));
/// let all: Vec<&Message> = messages.iter().collect();
/// let (text, tokens) = futures::executor::block_on(writer.write(&gap, &all))?;
/// assert!(text.starts_with("[Conversation Summary]\n") && tokens <= gap.allowance);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct SummaryWriter<'a> {
    summarizer: Option<&'a dyn Summarizer>,
    deadline: Duration,
    late: &'a [Vec<Message>],
    /// The history of the plan, if it has one.
    history: Option<&'a History>,
    /// The request to the summarizer, without groups.
    pub(super) request: SummaryRequest<'a>,
}

/// Time limit of a summary, enough for several long answers of a slow model.
pub(crate) const DEADLINE: Duration = Duration::from_secs(600);

/// Minimum size of the prose that is requested from a summarizer.
const PROSE_MIN: Tokens = Tokens(16);

/// Maximum number of attempts to write a digest, each with less room.
const TRIES_MAX: usize = 4;

/// Divisor of a summary's tokens: identifiers get at most this share.
const IDENTIFIERS_SHARE: u32 = 4;

impl<'a> SummaryWriter<'a> {
    /// A writer for plans whose index was filled with this counter. Without a summarizer it writes only digests and
    /// ledgers.
    #[must_use]
    pub const fn new(counter: &'a (dyn TokenCounter + Send + Sync)) -> Self {
        let request = SummaryRequest::new(&[], Tokens::ZERO, counter);
        Self { summarizer: None, deadline: DEADLINE, late: &[], history: None, request }
    }

    /// Sets the summarizer for all summaries except digests and ledgers, if there is one.
    #[must_use]
    pub const fn with_summarizer(mut self, summarizer: Option<&'a dyn Summarizer>) -> Self {
        self.summarizer = summarizer;
        self
    }

    /// Sets the time limit of one summary: ten minutes by default.
    #[must_use]
    pub const fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Sets the model of the conversation.
    #[must_use]
    pub const fn with_model(mut self, model: &'a str) -> Self {
        self.request.model = model;
        self
    }

    /// Sets the next request of the conversation.
    #[must_use]
    pub const fn with_live(mut self, live: Option<&'a LiveRequest>) -> Self {
        self.request.live = live;
        self
    }

    /// Sets the subject to emphasize in summaries, in the caller's words.
    #[must_use]
    pub const fn with_focus(mut self, focus: Option<&'a str>) -> Self {
        self.request.focus = focus;
        self
    }

    /// Sets the answers that the summaries in a span do not contain yet, each with its call, from
    /// [`History::late_answers`](epitome_std::history::History::late_answers).
    #[must_use]
    pub const fn with_late_answers(mut self, late: &'a [Vec<Message>]) -> Self {
        self.late = late;
        self
    }

    /// Sets the history of the plans. If the model can read messages by number ([`Handles`]), a summary contains
    /// the numbers of its messages.
    #[must_use]
    pub const fn with_history(mut self, history: &'a History) -> Self {
        self.history = Some(history);
        self
    }

    pub(crate) const fn with_costs(mut self, costs: &'a Costs) -> Self {
        self.request = self.request.with_costs(costs);
        self
    }

    pub(crate) const fn counter(&self) -> &'a (dyn TokenCounter + Send + Sync) {
        self.request.counter
    }

    pub(super) const fn summarizer(&self) -> Option<&'a dyn Summarizer> {
        self.summarizer
    }

    /// Writes the text of a gap of a plan. Returns it with its size in tokens, as a message of the model.
    /// `messages` are the messages of the plan's index, by position.
    ///
    /// # Errors
    /// [`SummaryError`], also if the summarizer panics or exceeds the time limit.
    ///
    /// # Cancel safety
    /// If the future is dropped, only the costs of the calls so far are lost.
    pub async fn write(
        &self,
        gap: &SummaryGap<'_>,
        messages: &[&Message],
    ) -> Result<(String, Tokens), SummaryError> {
        if gap.writer == Writer::Ledger {
            return self.ledger(gap, messages);
        }
        let Covered { earlier, quotes, identifiers, groups, numbers } =
            covered(gap, messages, self.late, self.history);
        let quotes = quotes.newest(gap.quotes, self.counter());
        let allowance =
            Tokens(gap.allowance.0.saturating_sub(quotes.tokens(self.counter()).0)).min(gap.prose);
        let listed = identifiers.best(Tokens(allowance.0 / IDENTIFIERS_SHARE), self.counter());
        let answered = is_answered(gap, messages, earlier.answered);
        // The lines around the prose. If they leave no room for prose, they are dropped, the identifiers first.
        let handle = self.handle(numbers);
        let around = [
            (handle, answered, listed.as_slice()),
            (handle, answered, &[]),
            (handle, None, &[]),
            (None, None, &[]),
        ];
        let around = around.map(|(handle, answered, identifiers)| SummaryText {
            handle,
            answered,
            identifiers,
            ..SummaryText::default()
        });
        let room = |around: &SummaryText<'_>| {
            let with_a_word = SummaryText { prose: "x", ..*around };
            Tokens(allowance.0.saturating_sub(self.size(&with_a_word.write()).0))
        };
        let fits = around.iter().find(|around| room(around) >= PROSE_MIN);
        let around = match (fits, gap.writer) {
            (Some(fits), _) => *fits,
            (None, Writer::Digest) => SummaryText::default(),
            (None, _) => return Err(SummaryError::NoRoom { allowance: gap.allowance }),
        };
        let previous = Some(earlier.prose.as_str()).filter(|prose| !prose.is_empty());
        let request = SummaryRequest { previous, groups: &groups, allowance: room(&around), ..self.request };
        if gap.writer == Writer::Digest {
            return self.digest(allowance, request, around);
        }
        let answer = self.ask(&request).await?;
        let text = SummaryText { prose: checked(&answer)?, ..around };
        let tokens = self.size(&text.write());
        if tokens > allowance {
            return Err(SummaryError::TooLarge { tokens, allowance });
        }
        Ok(self.quoting(gap, text, quotes))
    }

    /// The text with the newest quotes that fit.
    fn quoting(&self, gap: &SummaryGap<'_>, text: SummaryText<'_>, mut quotes: Quotes) -> (String, Tokens) {
        loop {
            let whole = SummaryText { quotes: Some(&quotes), ..text }.write();
            let tokens = self.size(&whole);
            if tokens <= gap.allowance || !quotes.leave_out_oldest() {
                return (whole, tokens);
            }
        }
    }

    /// The handle by which the model can read the messages of these numbers, if it can.
    fn handle(&self, numbers: Option<Numbers>) -> Option<Handle<'a>> {
        let tool = self.history?.handles().map(Handles::tool)?;
        numbers.map(|numbers| Handle { tool, numbers })
    }

    /// Tokens of a summary with this text, as a message of the model.
    fn size(&self, text: &str) -> Tokens {
        measure_message(&Message::assistant(text), self.counter()).tokens
    }

    /// Writes a digest with the lines around it.
    fn digest(
        &self,
        allowance: Tokens,
        mut request: SummaryRequest<'_>,
        around: SummaryText<'_>,
    ) -> Result<(String, Tokens), SummaryError> {
        // The whole may have slightly more tokens than its pieces. The next attempt then has less room.
        for _ in 0..TRIES_MAX {
            let prose = digest(&request);
            // Without text, or with invalid text, the digest is only the note.
            let text = SummaryText { prose: checked(&prose).unwrap_or(LEFT_OUT), ..around }.write();
            let tokens = self.size(&text);
            let Some(over) = tokens.0.checked_sub(allowance.0).filter(|over| *over > 0) else {
                return Ok((text, tokens));
            };
            request.allowance = Tokens(request.allowance.0.saturating_sub(over));
        }
        let text = SummaryText { prose: LEFT_OUT, ..SummaryText::default() }.write();
        let tokens = self.size(&text);
        match tokens <= allowance {
            true => Ok((text, tokens)),
            false => Err(SummaryError::NoRoom { allowance }),
        }
    }

    /// Writes a ledger: the identifiers that the plan hides or shortens and that stay visible nowhere.
    fn ledger(&self, gap: &SummaryGap<'_>, messages: &[&Message]) -> Result<(String, Tokens), SummaryError> {
        let Gone { earlier, identifiers, numbers } = gone(gap, messages, self.history, self.counter());
        let answered = is_answered(gap, messages, earlier.answered);
        // The text of the summary before stays if it fits.
        let handle = self.handle(numbers);
        let texts = [
            (handle, earlier.prose.as_str(), Some(&earlier.quotes), answered),
            (handle, "", None, answered),
            (handle, "", None, None),
            (None, "", None, None),
        ];
        let texts = texts.map(|(handle, prose, quotes, answered)| SummaryText {
            handle,
            prose,
            is_ledger: true,
            answered,
            quotes,
            identifiers: &[],
        });
        let sizes = texts.map(|text| (text, self.size(&text.write())));
        let fitting = sizes.into_iter().find(|(_, around)| *around <= gap.allowance);
        let Some((text, around)) = fitting else {
            return Err(SummaryError::NoRoom { allowance: gap.allowance });
        };
        let room = Tokens(gap.allowance.0.saturating_sub(around.0));
        let mut listed = identifiers.best(room, self.counter());
        loop {
            let text = SummaryText { identifiers: &listed, ..text }.write();
            let tokens = self.size(&text);
            if tokens <= gap.allowance {
                return Ok((text, tokens));
            }
            // Headings and spaces may have slightly more tokens than their estimate.
            listed.truncate(listed.len().saturating_sub(listed.len().div_ceil(16)));
        }
    }

    /// Calls the summarizer, with a time limit and protection against panics.
    pub(super) async fn ask(&self, request: &SummaryRequest<'_>) -> Result<String, SummaryError> {
        let Some(summarizer) = self.summarizer else {
            return Err(SummaryError::Failed("there is no summarizer".into()));
        };
        let asked = AssertUnwindSafe(async { summarizer.summarize(request).await }).catch_unwind();
        match select(pin!(asked), futures_timer::Delay::new(self.deadline)).await {
            Either::Left((answer, _)) => answer.unwrap_or(Err(SummaryError::Panicked)),
            Either::Right(_) => Err(SummaryError::TimedOut),
        }
    }
}

impl fmt::Debug for SummaryWriter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SummaryWriter")
            .field("summarizer", &self.summarizer)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}
