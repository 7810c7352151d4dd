//! `epitome show`: a conversation as text for people.

mod filter;
mod follow;
mod message;

use std::io;

use epitome::core::count_message;
use epitome::wire::ToolCompaction;

use crate::amount::{counted, grouped};
use crate::args::ShowArgs;
use crate::failure::{ExitCode, Failure, Result, code};
use crate::output::{self, Audience};
use crate::redact::Redactor;
use crate::report::place_of;
use crate::scan::{self, Counter, ESTIMATE, Groups};
use crate::transcript::{Input, Transcript, View};
use crate::visible::line;

use filter::Filter;
pub(super) use message::{Length, Shown};

pub(crate) fn run(args: &ShowArgs) -> Result<ExitCode> {
    if args.follow {
        return follow::run(args);
    }
    let input = Input::open_to_look(&args.input)?;
    let mut transcripts = input.transcripts(&args.input)?;
    let mut screen = Screen::new(args)?;
    let mut all = transcripts.iter_mut().enumerate();
    let said = all.try_for_each(|(at, transcript)| {
        if args.input.part.each {
            screen.say(&format!("=== {}\n", line(&place_of(at, transcript.pointer()))))?;
        }
        screen.conversation(transcript)
    });
    if screen.audience == Audience::Gone {
        return Ok(ExitCode::SUCCESS);
    }
    said?;
    if let ([transcript], false) = (transcripts.as_slice(), args.input.part.each) {
        transcript.mention_others();
    }
    screen.end()
}

/// The output, and the number of messages shown so far.
struct Screen<'a> {
    filter: Filter<'a>,
    redactor: Option<Redactor>,
    length: Length,
    shown: u64,
    /// The last turn so far.
    turn: u32,
    audience: Audience,
}

impl<'a> Screen<'a> {
    fn new(args: &'a ShowArgs) -> Result<Self> {
        Ok(Self {
            filter: Filter::new(args),
            redactor: Redactor::new(&args.redact)?,
            length: if args.full { Length::Full } else { Length::Short },
            shown: 0,
            turn: 0,
            audience: Audience::Listening,
        })
    }

    /// Shows the messages of a conversation that pass the filter.
    fn conversation(&mut self, transcript: &mut Transcript<'_>) -> Result<()> {
        let compactions = transcript.compactions();
        let mut compactions = compactions.iter().peekable();
        let mut numbers = Numbers::new()?;
        transcript.for_each(|view| {
            let shown = numbers.shown(view)?;
            let mut before = Vec::new();
            while let Some(found) = compactions.next_if(|found| found.at <= shown.at) {
                before.push(found);
            }
            self.message(shown, &before)
        })?;
        match self.filter.is_open() {
            true => compactions.try_for_each(|found| self.say(&compaction(found))),
            false => Ok(()),
        }
    }

    /// Shows a message that passes the filter, after the compactions of the tool before it.
    fn message(&mut self, mut shown: Shown, before: &[&ToolCompaction]) -> Result<()> {
        self.turn = self.turn.max(shown.turn);
        if let Some(redactor) = &mut self.redactor {
            shown.message = redactor.message(shown.message);
            redactor.found().tell_on_interrupt();
        }
        if !self.filter.takes(&shown) {
            return Ok(());
        }
        if !self.filter.is_search() {
            before.iter().try_for_each(|found| self.say(&compaction(found)))?;
        }
        self.shown += 1;
        self.say(&shown.to_text(self.length))
    }

    /// Reports the redactions on standard error, apart from the output.
    fn tell(&self) {
        if let Some(redactor) = &self.redactor {
            redactor.found().tell();
        }
    }

    /// Prints `text`. If the reader of the output is gone, a silent error ends the reading of the transcript.
    fn say(&mut self, text: &str) -> Result<()> {
        self.audience = output::say(text)?;
        match self.audience {
            Audience::Listening => Ok(()),
            Audience::Gone => Err(Failure::stdout(&io::ErrorKind::BrokenPipe.into())),
        }
    }

    /// The exit code after all messages are printed.
    fn end(&self) -> Result<ExitCode> {
        self.tell();
        match self.filter.turn() {
            _ if self.shown > 0 => Ok(ExitCode::SUCCESS),
            Some(turn) if turn > self.turn => {
                Err(Failure::input(format!("--turn {turn}: the last turn is {}", self.turn)))
            }
            Some(0) if !self.filter.is_search() => {
                Err(Failure::input("--turn 0: nothing stands before the first request, which is turn 1"))
            }
            _ => Ok(ExitCode::from(code::VIOLATIONS)),
        }
    }
}

/// Numbers and counts the messages of one conversation.
struct Numbers {
    index: Groups,
    counter: Counter,
    next: usize,
}

impl Numbers {
    fn new() -> Result<Self> {
        Ok(Self { index: Groups::new(), counter: scan::counter(ESTIMATE)?, next: 0 })
    }

    fn shown(&mut self, view: &View<'_>) -> Result<Shown> {
        let tokens = count_message(view, &*self.counter);
        let placed = scan::place(&mut self.index, view, tokens)?;
        let message = view.to_message().map_err(|error| Failure::input(error.to_string()))?;
        let at = self.next;
        self.next += 1;
        Ok(Shown { at, turn: placed.turn.0, tokens: tokens.0, orphan: placed.orphan, message })
    }
}

/// A line about a compaction by the tool that wrote the file.
fn compaction(found: &ToolCompaction) -> String {
    let dropped = found
        .dropped
        .map_or_else(|| "an unknown number of messages".to_owned(), |dropped| counted(dropped, "message"));
    let mut text = format!("~~~ compacted by the tool that wrote it: {dropped} dropped");
    for (what, tokens) in [("before", found.tokens_before), ("after", found.tokens_after)] {
        if let Some(tokens) = tokens {
            text += &format!(", {} tokens {what}", grouped(tokens));
        }
    }
    if !found.trigger.is_empty() {
        text += &format!(" ({})", line(&found.trigger));
    }
    text + "\n"
}
