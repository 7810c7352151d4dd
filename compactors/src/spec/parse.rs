//! From text to stages, and from single values to values that the table allows.

use std::borrow::ToOwned as _;
use std::string::String;
use std::vec::Vec;

use super::error::{SpecError, beginning, nearest};
use super::table::{Kind, Parameter, STAGES, StageRow};
use super::{STAGES_MAX, Stage, Value, plain};

/// Separators of stages.
const STAGE_ENDS: &[char] = &['|', ','];
/// Separator before each parameter.
const PARAMETER: &[char] = &[':'];

pub(super) fn stages(text: &str) -> Result<Vec<Stage>, SpecError> {
    let texts = split(text, STAGE_ENDS);
    if texts.len() > STAGES_MAX {
        return Err(SpecError::TooManyStages { max: STAGES_MAX });
    }
    (1..).zip(texts).map(|(number, text)| stage(number, text)).collect()
}

fn stage(number: usize, text: &str) -> Result<Stage, SpecError> {
    if text.trim().is_empty() {
        return Err(SpecError::Empty { stage: number });
    }
    let mut pieces = split(text, PARAMETER).into_iter();
    let mut stage = Stage::named(pieces.next().unwrap_or_default())?;
    for piece in pieces {
        let (name, value) = match piece.split_once('=') {
            Some((name, value)) => (name, Some(unescaped(trimmed(value)))),
            None => (piece, None),
        };
        stage.say(name, Said::Text(value.as_deref()))?;
    }
    Ok(stage)
}

/// Value of a parameter, before it is checked.
pub(super) enum Said<'a> {
    /// The text behind `=`, if there is one.
    Text(Option<&'a str>),
    Number(u64),
    Switch(bool),
    Tools(Vec<String>),
}

impl Stage {
    /// The stage of the strategy with this name.
    pub(super) fn named(name: &str) -> Result<Self, SpecError> {
        let name = plain(name);
        match STAGES.iter().find(|row| row.name == name) {
            Some(row) => Ok(Self { row, said: Vec::new() }),
            None => Err(SpecError::UnknownStrategy {
                nearest: nearest(&name, STAGES.iter().map(|row| (row.name, row.name))),
                name: beginning(&name),
                known: super::names(),
            }),
        }
    }

    /// Sets the value of a parameter.
    pub(super) fn say(&mut self, name: &str, said: Said<'_>) -> Result<(), SpecError> {
        let (at, parameter) = parameter(self.row, name)?;
        let (strategy, value) = (self.row.name, value(self.row, parameter, said)?);
        match self.said.binary_search_by_key(&at, |(at, _)| *at) {
            Err(place) => self.said.insert(place, (at, value)),
            Ok(place) => match (self.said.get_mut(place), value) {
                // Each further tool is added to the list.
                (Some((_, Value::Tools(tools))), Value::Tools(more)) => tools.extend(more),
                _ => return Err(SpecError::Twice { strategy, parameter: parameter.name }),
            },
        }
        Ok(())
    }
}

fn parameter(row: &'static StageRow, name: &str) -> Result<(usize, &'static Parameter), SpecError> {
    let name = plain(name);
    let is_named = |parameter: &Parameter| parameter.name == name || parameter.short == Some(name.as_str());
    let found = row.parameters.iter().enumerate().find(|(_, parameter)| is_named(parameter));
    let spelled = row.parameters.iter().flat_map(|parameter| {
        [Some(parameter.name), parameter.short].into_iter().flatten().map(|spelled| (spelled, parameter.name))
    });
    found.ok_or_else(|| SpecError::UnknownParameter {
        strategy: row.name,
        nearest: nearest(&name, spelled),
        name: beginning(&name),
        known: row.parameters.iter().map(|parameter| parameter.name).collect(),
    })
}

fn value(row: &StageRow, parameter: &'static Parameter, said: Said<'_>) -> Result<Value, SpecError> {
    let known = match (&parameter.kind, &said) {
        // Larger numbers are limited to the largest `u32`.
        (Kind::Count, _) => number(&said).map(|number| Value::Number(number.min(u64::from(u32::MAX)))),
        (Kind::Tokens, _) => number(&said).map(Value::Number),
        (Kind::Switch, Said::Switch(on)) => Some(Value::Switch(*on)),
        (Kind::Switch, Said::Text(None | Some("true"))) => Some(Value::Switch(true)),
        (Kind::Switch, Said::Text(Some("false"))) => Some(Value::Switch(false)),
        (Kind::Word(words), Said::Text(Some(word))) => {
            let own = words.iter().find(|spelled| spelled.contains(&plain(word).as_str()));
            own.and_then(|spelled| spelled.first()).map(|word| Value::Word(word))
        }
        (Kind::Tools, Said::Text(Some(tool))) if !tool.is_empty() => {
            Some(Value::Tools([(*tool).to_owned()].into()))
        }
        (Kind::Tools, Said::Tools(tools)) if !tools.is_empty() && !tools.iter().any(String::is_empty) => {
            Some(Value::Tools(tools.clone()))
        }
        _ => None,
    };
    known.ok_or_else(|| {
        let given = match &said {
            Said::Text(text) => beginning(text.unwrap_or_default()),
            Said::Number(number) => std::format!("{number}"),
            Said::Switch(on) => std::format!("{on}"),
            Said::Tools(tools) => beginning(&tools.join(", ")),
        };
        let words: &[&[&str]] = if let Kind::Word(words) = parameter.kind { words } else { &[] };
        let spelled =
            words.iter().flat_map(|spelled| spelled.iter().filter_map(|one| Some((*one, *spelled.first()?))));
        let nearest = nearest(&given, spelled);
        SpecError::Value {
            strategy: row.name,
            parameter: parameter.name,
            given,
            nearest,
            expected: parameter.kind.expected(),
        }
    })
}

fn number(said: &Said<'_>) -> Option<u64> {
    match said {
        Said::Number(number) => Some(*number),
        Said::Text(Some(text)) if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
        _ => None,
    }
}

impl Kind {
    fn expected(&self) -> String {
        match self {
            Self::Count => "a number".into(),
            Self::Tokens => "a number of tokens".into(),
            Self::Switch => "true, false".into(),
            Self::Word(words) => {
                words.iter().filter_map(|spelled| spelled.first().copied()).collect::<Vec<_>>().join(", ")
            }
            Self::Tools => "the name of a tool".into(),
        }
    }
}

/// The pieces between the characters `ends`. A character behind a backslash separates nothing; the backslash stays.
fn split<'a>(text: &'a str, ends: &[char]) -> Vec<&'a str> {
    let (mut pieces, mut begin, mut escapes) = (Vec::new(), 0, false);
    for (at, character) in text.char_indices() {
        if !escapes && ends.contains(&character) {
            pieces.push(text.get(begin..at).unwrap_or_default());
            begin = at.saturating_add(character.len_utf8());
        }
        escapes = !escapes && character == '\\';
    }
    pieces.push(text.get(begin..).unwrap_or_default());
    pieces
}

/// The text without white space around it. White space behind a backslash stays.
fn trimmed(text: &str) -> &str {
    let text = text.trim_start();
    let short = text.trim_end();
    let backslashes = short.chars().rev().take_while(|character| *character == '\\').count();
    let escaped =
        text.get(short.len()..).and_then(|rest| rest.chars().next()).filter(|_| backslashes % 2 == 1);
    let end = short.len().saturating_add(escaped.map_or(0, char::len_utf8));
    text.get(..end).unwrap_or(short)
}

/// The text without the backslashes that escape the next character.
fn unescaped(text: &str) -> String {
    let (mut out, mut escapes) = (String::with_capacity(text.len()), false);
    for character in text.chars() {
        escapes = !escapes && character == '\\';
        if !escapes {
            out.push(character);
        }
    }
    out
}

/// The text with a backslash before each character with a meaning and before white space, which would be trimmed at
/// the ends.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if character == '\\'
            || character.is_whitespace()
            || [STAGE_ENDS, PARAMETER].concat().contains(&character)
        {
            out.push('\\');
        }
        out.push(character);
    }
    out
}
