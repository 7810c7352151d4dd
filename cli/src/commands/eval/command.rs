//! An external program that compacts: one process for a run, with one line per request and per answer.

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

/// A row for an external program: `NAME=COMMAND` on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandSpec {
    name: String,
    /// The program and its arguments.
    words: Vec<String>,
}

/// A running external program.
pub(super) struct Command {
    name: String,
    process: RefCell<Process>,
}

/// A message of a request to the program, or of its answer.
#[derive(Debug, Clone)]
pub(super) struct Given {
    /// Its number in the conversation; `None` for a message that the program wrote.
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
    /// Starts these programs. `limit` is the time limit of each answer.
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

    /// Asks the program to compact a conversation to at most `goal` tokens.
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
    /// The messages that the model sees after a compaction of `before` to `after`.
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

    /// Tokens of the unchanged messages at the beginning.
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
        // A conversation with more calls than the validator can count is illegal too.
        illegal |= validator.push(&given.counted.message, &mut |_| illegal = true).is_err();
    }
    validator.finish(&mut |_| illegal = true);
    illegal
}

/// The message in Chat Completions, on one line.
fn text_of(counted: &CountedMessage) -> Result<String> {
    let text = session::raw(&counted.message)?;
    // Line breaks within a JSON string are escaped, so that these are white space.
    Ok(text.get().replace(['\n', '\r'], " "))
}

/// The words of a command: separated by blanks, or quoted, as in a shell. No other syntax of a shell is supported.
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
