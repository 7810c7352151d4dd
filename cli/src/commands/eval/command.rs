//! An outside program that compacts: one process for a run, asked line by line.

mod answer;
mod process;

use core::cell::RefCell;
use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use epitome::core::{OpenCallTree, Profile, TokenCounter, Validator};

use super::prompt::CountedMessage;
use super::shown::Shown;
use crate::commands::session;
use crate::failure::{Failure, Result};

use answer::Answer;
use process::Process;

/// A row that an outside program fills: `NAME=COMMAND` on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandSpec {
    name: String,
    /// The program and its arguments.
    words: Vec<String>,
}

/// An outside program that is running.
pub(super) struct Command {
    name: String,
    process: RefCell<Process>,
}

/// A message that the program is given, or has answered.
#[derive(Debug, Clone)]
pub(super) struct Given {
    /// Its number in the conversation; `None` for one that the program has written.
    pub(super) position: Option<u32>,
    pub(super) counted: CountedMessage,
}

impl FromStr for CommandSpec {
    type Err = String;

    fn from_str(text: &str) -> core::result::Result<Self, String> {
        let expected = "expected NAME=COMMAND, for example trimmed='python3 trim.py'";
        let (name, command) = text.split_once('=').ok_or(expected)?;
        let words = words(command)?;
        if name.trim().is_empty() || words.is_empty() {
            return Err(expected.to_owned());
        }
        Ok(Self { name: name.trim().to_owned(), words })
    }
}

impl Command {
    /// Starts these programs. Each has so long for an answer.
    pub(super) fn all(specs: &[CommandSpec], limit: Duration) -> Result<Vec<Self>> {
        for (at, spec) in specs.iter().enumerate() {
            if specs.iter().take(at).any(|other| other.name == spec.name) {
                let name = &spec.name;
                return Err(Failure::input(format!("--command: two programs are called {name}: rename one")));
            }
        }
        specs.iter().map(|spec| Self::start(spec, limit)).collect()
    }

    fn start(spec: &CommandSpec, limit: Duration) -> Result<Self> {
        let process = RefCell::new(Process::start(&spec.name, &spec.words, limit)?);
        Ok(Self { name: spec.name.clone(), process })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Asks the program for a compaction of a conversation to no more than `goal` tokens.
    pub(super) fn compact(
        &self,
        given: &[Given],
        goal: u64,
        counter: &dyn TokenCounter,
    ) -> Result<Vec<Given>> {
        let texts = given.iter().map(|given| text_of(&given.counted)).collect::<Result<Vec<_>>>()?;
        let tokens: Vec<String> = given.iter().map(|given| given.counted.tokens().to_string()).collect();
        let (messages, tokens) = (texts.join(","), tokens.join(","));
        let request = format!("{{\"messages\":[{messages}],\"tokens\":[{tokens}],\"goal_tokens\":{goal}}}");
        let mut process = self.process.borrow_mut();
        let line = process.ask(request)?;
        let answer = Answer::parse(&line, given, &texts, counter);
        answer.map(|answer| answer.left).map_err(|why| process.nonsense(&why))
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Command").field(&self.name).finish()
    }
}

impl Given {
    /// The view of the model on `before` after a compaction that left `after`.
    pub(super) fn shown(before: &[Self], after: &[Self]) -> Shown {
        let tokens = |given: &[&Self]| given.iter().map(|given| given.counted.tokens()).sum();
        let (whole, new): (Vec<_>, Vec<_>) = after.iter().partition(|given| given.position.is_some());
        Shown {
            whole: whole.iter().filter_map(|given| given.position).collect(),
            new: new.iter().map(|given| given.counted.text.clone()).collect(),
            tokens: tokens(&whole) + tokens(&new),
            written: tokens(&new),
            stable: Self::stable(before, after),
            illegal: is_illegal(after) && !is_illegal(before),
        }
    }

    /// The tokens from the beginning on that stand as they stood.
    pub(super) fn stable(before: &[Self], after: &[Self]) -> u64 {
        let is_same = |one: &Self, other: &Self| {
            one.position == other.position && one.counted.message == other.counted.message
        };
        let same = before.iter().zip(after).take_while(|(one, other)| is_same(one, other));
        same.map(|(_, after)| after.counted.tokens()).sum()
    }
}

/// Whether an API of Chat Completions would refuse these messages.
fn is_illegal(messages: &[Given]) -> bool {
    let (mut validator, mut illegal) = (Validator::<OpenCallTree>::new(Profile::OpenaiChat), false);
    for given in messages {
        // More calls than anybody can count are no conversation either.
        illegal |= validator.push(&given.counted.message, &mut |_| illegal = true).is_err();
    }
    validator.finish(&mut |_| illegal = true);
    illegal
}

/// The message as Chat Completions has it, on one line.
fn text_of(counted: &CountedMessage) -> Result<String> {
    let text = session::raw(&counted.message)?;
    // Within a text of JSON they are escaped.
    Ok(text.get().replace(['\n', '\r'], " "))
}

/// The words of a command: between blanks, or between quotes, as in a shell. Nothing else of a shell is there.
fn words(command: &str) -> core::result::Result<Vec<String>, String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in command.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '"' || c == '\'' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    match quote {
        Some(open) => Err(format!("a quote ({open}) is not closed")),
        None => Ok(words),
    }
}

#[cfg(test)]
mod tests;
