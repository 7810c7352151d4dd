//! One conversation of a page.

use epitome::core::Tokens;
use epitome::core::message::Role;
use serde::Serialize;

use super::Asking;
use super::context::Context;
use super::kind::ByKind;
use super::origin::{Origin, Origins};
use super::strip::{self, Group, Strip};
use crate::commands::eval::{Case, CountedMessage, Needs};
use crate::commands::show::{Length, Shown};
use crate::failure::{Failure, Result};
use crate::redact::Redactor;
use crate::scan::{self, Groups};
use crate::transcript::Transcript;

/// A conversation and its figures, with sizes in tokens. Its fields are the program's JSON.
#[derive(Debug, Serialize)]
pub(super) struct Conversation {
    /// The file, and the place in it.
    pub(super) place: String,
    pub(super) format: &'static str,
    pub(super) tokenizer: String,
    pub(super) messages: u64,
    pub(super) turns: u32,
    pub(super) tokens: u64,
    pub(super) by_kind: ByKind,
    pub(super) by_turn: Vec<Turn>,
    /// Calls and results by tool and file, the most expensive first.
    pub(super) by_tool: Vec<Origin>,
    pub(super) context: Context,
    /// The messages before which the tool that wrote the file compacted the conversation.
    pub(super) compacted_by_tool: Vec<u64>,
    pub(super) groups: Vec<Group>,
    pub(super) strips: Vec<Strip>,
    /// The model's next needs, and the share that each strategy keeps; `None` if the model needed nothing.
    pub(super) needs: Option<Needs>,
    #[serde(skip)]
    pub(super) said: Vec<Said>,
}

/// One turn; turn 0 has all messages before the first request.
#[derive(Debug, Serialize)]
pub(super) struct Turn {
    pub(super) turn: u32,
    /// Its first message, counted from 0.
    pub(super) first_message: u64,
    pub(super) tokens: ByKind,
}

/// A message of the page.
#[derive(Debug, Serialize)]
pub(super) struct Said {
    role: Role,
    turn: u32,
    tokens: u64,
    /// The number of its group, counted from 0.
    group: u32,
    /// Its text, as `epitome show --full` prints it.
    text: String,
}

impl Conversation {
    pub(super) fn of(
        place: &str,
        transcript: &mut Transcript<'_>,
        asking: &Asking,
        mut redactor: Option<&mut Redactor>,
    ) -> Result<Self> {
        let format = transcript.format().as_str();
        let compacted_by_tool = transcript.compactions().iter().map(|found| found.at as u64).collect();
        let messages = read(transcript, asking)?;
        let clean = redactor.as_deref_mut().map(|redactor| without_secrets(&messages, redactor, asking));
        let said = said(&messages, clean.as_deref().unwrap_or(&messages))?;
        let (groups, strips) = strip::all(transcript, asking)?;
        let counter = &asking.measure.counter;
        let (mut by_kind, mut origins, mut by_turn) = (ByKind::default(), Origins::default(), Vec::new());
        let shown = clean.as_deref().unwrap_or(&messages);
        for (at, ((counted, shown), said)) in messages.iter().zip(shown).zip(&said).enumerate() {
            let tokens = ByKind::of(&counted.message, &**counter);
            by_kind.add_all(&tokens);
            origins.add(&counted.message, &shown.message, &**counter);
            if let Some(turn) = turn(&mut by_turn, said.turn, at as u64) {
                turn.tokens.add_all(&tokens);
            }
        }
        let context = Context::of(&messages, asking)?;
        let place =
            redactor.and_then(|redactor| redactor.value(None, place)).unwrap_or_else(|| place.to_owned());
        // Lost identifiers are taken from texts without secrets.
        let case = Case::of_messages(place.clone(), clean.unwrap_or(messages));
        let needs = Needs::of(core::slice::from_ref(&case), &asking.measure)?;
        Ok(Self {
            place,
            format,
            tokenizer: counter.name().to_owned(),
            messages: said.len() as u64,
            turns: by_turn.iter().map(|turn| turn.turn).max().unwrap_or(0),
            tokens: by_kind.total(),
            by_kind,
            by_turn,
            by_tool: origins.into_rows(),
            context,
            compacted_by_tool,
            groups,
            strips,
            needs,
            said,
        })
    }
}

fn read(transcript: &mut Transcript<'_>, asking: &Asking) -> Result<Vec<CountedMessage>> {
    let mut messages = Vec::with_capacity(transcript.len());
    transcript.for_each(|view| {
        let message = view.to_message().map_err(|error| Failure::input(error.to_string()))?;
        messages.push(CountedMessage::of(message, &*asking.measure.counter));
        Ok(())
    })?;
    Ok(messages)
}

fn without_secrets(
    messages: &[CountedMessage],
    redactor: &mut Redactor,
    asking: &Asking,
) -> Vec<CountedMessage> {
    let clean = messages.iter().map(|counted| {
        let message = redactor.message(counted.message.clone());
        redactor.found().tell_on_interrupt();
        CountedMessage::of(message, &*asking.measure.counter)
    });
    clean.collect()
}

/// The messages of the page, each with its place and size, and its text without secrets.
fn said(messages: &[CountedMessage], clean: &[CountedMessage]) -> Result<Vec<Said>> {
    let (mut all, mut index) = (Vec::with_capacity(messages.len()), Groups::new());
    for (at, (counted, clean)) in messages.iter().zip(clean).enumerate() {
        let tokens = Tokens(u32::try_from(counted.tokens()).unwrap_or(u32::MAX));
        let placed = scan::place(&mut index, &counted.message, tokens)?;
        let turn = placed.turn.0;
        let message = clean.message.clone();
        let shown = Shown { at, turn, tokens: tokens.0, orphan: placed.orphan, message };
        let (role, text) = (counted.message.role(), shown.to_text(Length::Full));
        all.push(Said { role, turn, tokens: counted.tokens(), group: 0, text });
    }
    for (number, group) in (0..).zip(index.view().groups()) {
        for position in group.positions().flatten() {
            if let Some(said) = all.get_mut(position as usize) {
                said.group = number;
            }
        }
    }
    Ok(all)
}

/// The row of the turn of message `at`. A late answer belongs to an earlier turn.
fn turn(turns: &mut Vec<Turn>, turn: u32, at: u64) -> Option<&mut Turn> {
    let place = turns.binary_search_by_key(&turn, |row| row.turn).unwrap_or_else(|place| {
        turns.insert(place, Turn { turn, first_message: at, tokens: ByKind::default() });
        place
    });
    turns.get_mut(place)
}
