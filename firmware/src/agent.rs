//! A scripted agent: the messages of a greenhouse controller, of the same length in each run.

use core::fmt::{self, Write};

use epitome_compactors::{CLEARED, Pipeline, ToolResultClearing, Truncation};
use epitome_core::attribution::SeqRange;
use epitome_core::message::{MessageView, Role, SimpleMessage, ToolCallView};
use epitome_core::{
    BoundedSummaryError, Budget, ClassEstimator, LEDGER_OPENING, Outcome, Pass, Placed, Strategy,
    TokenCounter, count_message, write_openai_chat,
};

use crate::History;
use crate::measure::{Clock, Cost};

pub const MESSAGES_MAX: usize = 96;
pub const ARENA_BYTES: usize = 10_504;
/// Maximum number of tool results that a plan may clear. A turn has four results.
pub const RESULTS_MAX: usize = 36;
pub type Page = [u8; History::snapshot_bytes_max()];

pub const SYSTEM: &str = "You run a greenhouse. Keep it between 18 and 24 degrees. Answer briefly.";
pub const SUMMARY: &str =
    "Earlier: the sensors were read many times; the greenhouse stayed within its bounds.";

/// From this turn on, the next compaction is a summary. It is requested when the history exceeds the budget, and
/// arrives at the end of the turn.
const SUMMARY_TURN: u32 = 500;

/// From this turn on, a ledger keeps the identifiers of dropped messages, in at most so many bytes.
const LEDGER_TURN: u32 = 750;
const LEDGER_BYTES: usize = 256;

/// The agent and its history. Its methods are not inlined, so that their stack frames do not add up.
pub struct Agent<'a> {
    pub history: &'a mut History,
    page: &'a mut Page,
    clock: &'a Clock,
    budget: Budget,
    /// The messages to summarize, while the summary is being written.
    asked: Option<SeqRange>,
    summarized: bool,
    turn: u32,
    elided: usize,
    costs: Costs,
}

#[derive(Default)]
pub struct Costs {
    pub append: Cost,
    pub plan: Cost,
    pub per_group_worst: u32,
    pub compact: Cost,
    pub ledger: Cost,
}

pub type Done = Result<(), &'static str>;

impl<'a> Agent<'a> {
    pub fn new(history: &'a mut History, page: &'a mut Page, clock: &'a Clock) -> Self {
        // A token is about four bytes: the history reaches the goal in tokens before the arena is full.
        let budget = Budget::builder().window(2_600).trigger(1_900).goal(1_100).build().unwrap_or_default();
        let costs = Costs::default();
        Self { history, page, clock, budget, asked: None, summarized: false, turn: 0, elided: 0, costs }
    }

    /// One turn: a request, two steps with calls and results, a streamed answer.
    #[inline(never)]
    pub fn turn(&mut self, turn: u32) -> Done {
        self.turn = turn;
        if turn == 0 {
            self.push(&SimpleMessage::system(SYSTEM))?;
        }
        self.push(&SimpleMessage::user(&request(turn)))?;
        for step in 0..2 {
            self.step(turn, step)?;
        }
        if turn % 10 == 9 {
            self.push_log(turn)?;
        }
        self.answer(turn)?;
        if self.asked.is_some() {
            self.take_summary()?;
        }
        if turn % 100 == 99 { self.reset() } else { Ok(()) }
    }

    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    pub fn costs(&self) -> &Costs {
        &self.costs
    }

    /// Number of results that have been elided.
    pub fn elided(&self) -> usize {
        self.elided
    }

    #[inline(never)]
    pub fn finish(&self) -> Done {
        match (self.summarized, self.elided, self.costs.ledger.count()) {
            (false, ..) => Err("the summary never came"),
            (_, 0, _) => Err("no result was ever elided"),
            (.., 0) => Err("no ledger was ever written"),
            _ => Ok(()),
        }
    }

    /// One step: two tool calls, with results in the opposite order. In some turns the second tool does not answer in
    /// time.
    #[inline(never)]
    fn step(&mut self, turn: u32, step: u32) -> Done {
        let (first, second) =
            (line(format_args!("call_{turn}_{step}_a")), line(format_args!("call_{turn}_{step}_b")));
        let calls = [
            ToolCallView::new(&first, "read_sensor", r#"{"sensor":"temperature","unit":"celsius"}"#),
            ToolCallView::new(&second, "read_log", r#"{"lines":12}"#),
        ];
        self.push(&SimpleMessage::calls(&calls))?;
        let late = turn % 7 == 3;
        let log = if late { "[aborted: no answer in time]" } else { LOG };
        self.push(&SimpleMessage::result(&second, log))?;
        let reading = line(format_args!("{{\"celsius\":{},\"humidity\":{}}}", 18 + turn % 7, 40 + turn % 31));
        self.push(&SimpleMessage::result(&first, &reading))?;
        if late && !self.push(&SimpleMessage::result(&second, LOG))?.orphan {
            return Err("a second answer was taken");
        }
        Ok(())
    }

    /// Appends a report that may be longer than the free memory.
    #[inline(never)]
    fn push_log(&mut self, turn: u32) -> Done {
        let id = line(format_args!("call_{turn}_log"));
        self.push(&SimpleMessage::calls(&[ToolCallView::new(&id, "read_log", r#"{"lines":999}"#)]))?;
        self.make_room(REPORT_BYTES_MAX)?;
        self.page.iter_mut().zip(ROW.iter().cycle()).for_each(|(to, from)| *to = *from);
        let text = core::str::from_utf8(self.page.as_slice()).map_err(|_| "the report is not a text")?;
        let report = SimpleMessage::result(&id, text);
        let pushed = self.history.push_clamped(&report, REPORT_BYTES_MAX, &ClassEstimator::new());
        pushed.map_err(|_| "no room for a clamped report")?;
        self.compact_if_due()
    }

    /// Streams the answer in pieces. An answer that breaks off leaves no bytes in the arena.
    #[inline(never)]
    fn answer(&mut self, turn: u32) -> Done {
        self.make_room(128)?;
        let before = self.history.free_bytes();
        {
            let mut broken = self.history.begin(Role::Assistant).map_err(|_| "no room to begin")?;
            broken.extend("It is").map_err(|_| "no room for a piece")?;
        }
        if self.history.free_bytes() != before {
            return Err("a broken answer left something behind");
        }
        let mut answer = self.history.begin(Role::Assistant).map_err(|_| "no room to begin")?;
        for piece in ["It is ", "warm ", "enough. ", "Vents are "] {
            answer.extend(piece).map_err(|_| "no room for a piece")?;
        }
        answer
            .extend(if turn.is_multiple_of(2) { "open." } else { "closed." })
            .map_err(|_| "no room for a piece")?;
        answer.finish(&ClassEstimator::new()).map_err(|_| "no room to finish")?;
        self.compact_if_due()
    }

    #[inline(never)]
    fn push(&mut self, message: &SimpleMessage<'_>) -> Result<Placed, &'static str> {
        self.compact_if_due()?;
        let history = &mut *self.history;
        let (placed, cost) = self.clock.measure(|| history.push(message, &ClassEstimator::new()));
        self.costs.append.add(cost);
        if let Ok(placed) = placed {
            return Ok(placed);
        }
        self.shrink()?;
        self.history.push(message, &ClassEstimator::new()).map_err(|_| "no room, also after a compaction")
    }

    fn make_room(&mut self, bytes: usize) -> Done {
        let full = self.history.len() >= MESSAGES_MAX || self.history.index().part_count() >= RESULTS_MAX;
        if full || self.history.free_bytes() < bytes { self.shrink() } else { Ok(()) }
    }

    fn compact_if_due(&mut self) -> Done {
        if !self.budget.is_due(self.history.tokens()) || self.asked.is_some() {
            return Ok(());
        }
        match self.summarized {
            false if self.turn >= SUMMARY_TURN => self.ask_for_summary(),
            true if self.turn >= LEDGER_TURN => self.leave_ledger(),
            _ => self.compact(),
        }
    }

    /// Compacts: clears old results first, then drops the oldest messages.
    fn compact(&mut self) -> Done {
        let (clearing, truncation, budget) = (ToolResultClearing::new(), Truncation::new(), self.budget);
        let stages: [&dyn Strategy; 2] = [&clearing, &truncation];
        self.compact_by(&Pipeline::new(&stages).map_err(|_| "stages out of order")?, &budget)
    }

    /// Frees space in the tables, even if the history has few tokens: the goal is half of the tokens.
    #[inline(never)]
    fn shrink(&mut self) -> Done {
        let goal = self.history.tokens() / 2;
        let budget = Budget::builder().window(2_600).trigger(1_900).goal(goal).build().unwrap_or_default();
        self.compact_by(&Truncation::new(), &budget)
    }

    #[inline(never)]
    fn compact_by(&mut self, strategy: &dyn Strategy, budget: &Budget) -> Done {
        let after = self.plan(strategy, budget)?.ok_or("nothing to drop")?;
        let history = &mut *self.history;
        let (done, cost) = self.clock.measure(|| history.compact_with(CLEARED, &ClassEstimator::new()));
        self.costs.compact.add(cost);
        let done = done.map_err(|_| "a plan was lost")?;
        // A note may be smaller than the plan allows.
        let exact = done.results > 0 || self.history.tokens() == after;
        if done.tokens == 0 || done.bytes == 0 || self.history.tokens() > after || !exact {
            return Err("a compaction did not free what was planned");
        }
        self.elided += done.results;
        Ok(())
    }

    /// Plans with `strategy`. Returns the size after the plan in tokens; `None` if the plan changes nothing.
    #[inline(never)]
    fn plan(&mut self, strategy: &dyn Strategy, budget: &Budget) -> Result<Option<u64>, &'static str> {
        let groups = self.history.index().group_count().max(1);
        let history = &mut *self.history;
        let (outcome, cost) = self.clock.measure(|| history.plan(budget, Pass::Manual, strategy));
        self.costs.plan.add(cost);
        self.costs.per_group_worst = self.costs.per_group_worst.max(cost / groups);
        match outcome {
            Ok(Outcome::Planned(plan)) => Ok(Some(plan.tokens_after())),
            Ok(Outcome::Unchanged(_)) => Ok(None),
            Err(_) => Err("what is protected does not fit"),
        }
    }

    #[inline(never)]
    fn ask_for_summary(&mut self) -> Done {
        let budget = self.budget;
        self.plan(&Truncation::new(), &budget)?.ok_or("nothing to summarize")?;
        self.asked = self.history.span_to_summarize();
        let span = self.asked.ok_or("no span to summarize")?;
        if self.history.messages_in(span).count() < 2 { Err("too short a span") } else { Ok(()) }
    }

    #[inline(never)]
    fn take_summary(&mut self) -> Done {
        let span = self.asked.take().ok_or("no summary was asked for")?;
        match self.history.summarize(span, SUMMARY, &ClassEstimator::new()) {
            Ok(done) if done.tokens > 0 && done.bytes > 0 => self.summarized = true,
            Ok(_) => return Err("a summary freed nothing"),
            // The history was compacted before the summary arrived: the summary will be requested again.
            Err(BoundedSummaryError::NoMessages | BoundedSummaryError::NotWhole) => {}
            Err(_) => return Err("the summary was refused"),
        }
        Ok(())
    }

    /// Drops the oldest messages and keeps their identifiers in a ledger.
    #[inline(never)]
    fn leave_ledger(&mut self) -> Done {
        let (mut room, budget) = ([0; LEDGER_BYTES], self.budget);
        self.plan(&Truncation::new(), &budget)?.ok_or("nothing to drop")?;
        let span = self.history.span_to_summarize().ok_or("no span for a ledger")?;
        let history = &mut *self.history;
        let (done, cost) = self.clock.measure(|| {
            let text = history.ledger(span, &mut room)?;
            Some(history.summarize(span, text, &ClassEstimator::new()).map(|_| text.len()))
        });
        self.costs.ledger.add(cost);
        match done {
            // The messages of the user name the turns, so there must be identifiers.
            None => return Err("there was nothing to name"),
            Some(Err(_)) => return Err("a ledger was refused"),
            Some(Ok(len)) if len <= LEDGER_OPENING.len() => return Err("an empty ledger was written"),
            Some(Ok(_)) => {}
        }
        if self.budget.is_due(self.history.tokens()) { self.compact() } else { Ok(()) }
    }

    /// Simulates a power failure: only the snapshot in flash is left.
    #[inline(never)]
    fn reset(&mut self) -> Done {
        let before = digest(self.history)?;
        let len = self.history.snapshot(self.page).map_err(|_| "no room for a snapshot")?;
        self.history.clear();
        if let Some(byte) = self.page.get_mut(len / 2) {
            *byte ^= 1;
            if self.history.restore(self.page).is_ok() {
                return Err("damage was not found");
            }
        }
        if let Some(byte) = self.page.get_mut(len / 2) {
            *byte ^= 1;
        }
        self.history.restore(self.page).map_err(|_| "a snapshot was refused")?;
        if digest(self.history)? == before { Ok(()) } else { Err("a snapshot changed the request") }
    }
}

/// A digest of the next request.
#[inline(never)]
fn digest(history: &History) -> Result<u32, &'static str> {
    let mut sink = Digest(0x811C_9DC5);
    write_openai_chat(history.messages(), &mut sink).map_err(|_| "the request was not written")?;
    Ok(sink.0)
}

struct Digest(u32);

impl Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 =
            text.bytes().fold(self.0, |digest, byte| (digest ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        Ok(())
    }
}

/// Whether the recorded size of a message equals a fresh count.
pub fn counted(message: &impl MessageView, counter: &impl TokenCounter, tokens: u32) -> bool {
    count_message(message, counter).0 == tokens
}

/// A formatted text of at most 96 bytes.
pub struct Line {
    bytes: [u8; 96],
    len: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.len + text.len();
        self.bytes.get_mut(self.len..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}

impl core::ops::Deref for Line {
    type Target = str;

    fn deref(&self) -> &str {
        self.bytes.get(..self.len).and_then(|bytes| core::str::from_utf8(bytes).ok()).unwrap_or_default()
    }
}

fn line(text: fmt::Arguments<'_>) -> Line {
    let mut line = Line { bytes: [0; 96], len: 0 };
    // A piece of text that does not fit is left out.
    let _ = line.write_fmt(text);
    line
}

/// The request of the user in a turn.
pub fn request(turn: u32) -> Line {
    line(format_args!("Turn {turn}: how is the greenhouse, and are the vents all right?"))
}

const LOG: &str = "12:00 vents open\n12:05 fan on\n12:10 temperature 22.4\n12:15 fan off\n12:20 vents closed\n\
                   12:25 temperature 21.9\n12:30 pump on\n12:35 pump off\n12:40 \"door\" opened\n12:45 door closed\n";

/// One line of a report. The whole report is longer than the arena.
const ROW: &[u8] = b"00:00 temperature 21.0, humidity 48 %\n";
/// Maximum number of bytes of a report that are kept.
const REPORT_BYTES_MAX: usize = 512;
