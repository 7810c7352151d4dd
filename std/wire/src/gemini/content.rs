//! Reads one content of the wire as one or more messages.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use epitome_core::message::Role;
use epitome_message::{Message, Part, Str, WireText};

use super::ASSIGNED;
use super::part::{self, NAME, Unit};
use crate::answers::AnsweredCalls;
use crate::error::quoted;
use crate::expect::{expect_object, expect_text, share};
use crate::json::known::Value;
use crate::json::{self, ValueKind};
use crate::{WireError, WireErrorKind};

/// The ids of calls without an id on the wire.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    step: u64,
    /// Number of calls of the latest step.
    calls: u64,
    /// The ids of the open calls of the latest step, oldest first, by the name of the call.
    open: HashMap<Str, VecDeque<Str>>,
}

impl Ids {
    fn begin_step(&mut self) {
        self.step = self.step.saturating_add(1);
        self.calls = 0;
        self.open.clear();
    }

    fn give(&mut self, is_call: bool, name: &str) -> Str {
        if is_call {
            let id = Str::from(format!("{ASSIGNED}{}:{}", self.step, self.calls));
            self.calls = self.calls.saturating_add(1);
            self.open.entry(Str::from(name)).or_default().push_back(id.clone());
            return id;
        }
        self.open.get_mut(name).and_then(VecDeque::pop_front).unwrap_or_default()
    }
}

/// The messages of the content `text`, a slice of `whole`.
pub(crate) fn messages<'a>(
    whole: &Arc<str>,
    text: impl Into<Value<'a>>,
    ids: &mut Ids,
) -> Result<Vec<Message>, WireError> {
    let value = text.into();
    let text = value.text();
    expect_object(text, "a content")?;
    let [role, parts, content] = json::known::fields(value, &["role", "parts", "content"])?;
    // The writer would read it as a candidate, which has an inner content.
    if parts.is_none() && content.is_some() {
        return Err(WireError::shape(format!("expected `parts`, found {}", json::describe(text))));
    }
    let role = match role.filter(|role| *role != "null") {
        Some(role) => json::nested(text, role, "/role", self::role)?,
        None => Role::User,
    };
    if role == Role::Assistant {
        ids.begin_step();
    }
    let units = units_of(whole, value, parts, &mut |is_call, name| ids.give(is_call, name))?;
    let runs = runs(role, &units);
    let several = runs.len() > 1;
    let mut messages = Vec::with_capacity(runs.len().max(1));
    if runs.is_empty() {
        return Ok(vec![
            Message::new(role, Vec::new()).with_wire(WireText::new(NAME.clone(), share(whole, text))),
        ]);
    }
    for (run, is_result) in runs {
        let own = units.get(run).unwrap_or_default();
        let parts = own.iter().flat_map(|(unit, _)| unit.parts.iter().cloned()).collect();
        let mut message = Message::new(if is_result { Role::Tool } else { role }, parts);
        if let Some(name) = own.first().and_then(|(unit, _)| unit.name.clone()).filter(|_| is_result) {
            message = message.with_name(name);
        }
        let slice = match (own.first(), own.last()) {
            (Some((_, first)), Some((_, last))) if several => {
                let range = json::offset_of(text, first)..json::range_of(text, last).end;
                text.get(range).unwrap_or_default()
            }
            _ => text,
        };
        let wire = WireText::new(NAME.clone(), share(whole, slice)).with_rejoin(!messages.is_empty());
        messages.push(message.with_wire(wire));
    }
    Ok(messages)
}

/// The system message of `instruction`, a content or a text.
pub(super) fn instructions(whole: &Arc<str>, instruction: &str) -> Result<Message, WireError> {
    let parts = match ValueKind::of(instruction) {
        ValueKind::Text => vec![Part::Text(share(whole, &json::decode(instruction)))],
        _ => {
            let units = units(whole, instruction, &mut |_, _| Str::default())?;
            units.into_iter().flat_map(|(unit, _)| unit.parts).collect()
        }
    };
    Ok(Message::new(Role::System, parts).with_wire(WireText::new(NAME.clone(), share(whole, instruction))))
}

/// The units of the parts of a content, each with its text.
pub(super) fn units<'a>(
    whole: &Arc<str>,
    content: &'a str,
    id: &mut dyn FnMut(bool, &str) -> Str,
) -> Result<Vec<(Unit, &'a str)>, WireError> {
    units_of(whole, content.into(), json::known::field(content, "parts")?, id)
}

/// The units of a content whose `parts` are known.
fn units_of<'a>(
    whole: &Arc<str>,
    value: Value<'a>,
    parts: Option<&'a str>,
    id: &mut dyn FnMut(bool, &str) -> Str,
) -> Result<Vec<(Unit, &'a str)>, WireError> {
    let (content, mut units) = (value.text(), Vec::new());
    let Some(list) = parts.filter(|list| *list != "null") else { return Ok(units) };
    if ValueKind::of(list) == ValueKind::Object {
        // A single part without a list, which the API accepts too.
        return Ok(vec![(json::nested(content, list, "/parts", |raw| part::unit(whole, raw, id))?, list)]);
    }
    json::nested(content, list, "/parts", |list| {
        json::known::items_and_fields(value.within(list), &part::MEMBERS, |raw, values| {
            let path = format_args!("/{}", units.len());
            units.push((json::nested(list, raw, path, |raw| part::unit_of(whole, raw, values, id))?, raw));
            Ok(())
        })
    })?;
    Ok(units)
}

/// Whether the unit is the response to a function call of the caller.
fn is_response(unit: &Unit) -> bool {
    unit.parts.iter().any(|part| matches!(part, Part::ToolResult(_)))
}

/// The runs of units of a content: each response to a function call of the caller alone, and other units between them
/// together. The flag marks such a response.
pub(crate) fn runs(role: Role, units: &[(Unit, &str)]) -> Vec<(core::ops::Range<usize>, bool)> {
    let answered = AnsweredCalls::of(role, units.iter().flat_map(|(unit, _)| &unit.parts));
    let answers = |part| answered.has_result(part);
    let mut runs: Vec<(core::ops::Range<usize>, bool)> = Vec::new();
    for (at, (unit, _)) in units.iter().enumerate() {
        let alone = role == Role::User && is_response(unit) || unit.parts.iter().any(answers);
        match runs.last_mut() {
            Some((run, false)) if !alone => run.end = at.saturating_add(1),
            _ => runs.push((at..at.saturating_add(1), alone)),
        }
    }
    runs
}

fn role(raw: &str) -> Result<Role, WireError> {
    match &*expect_text(raw)? {
        "model" => Ok(Role::Assistant),
        "user" | "function" => Ok(Role::User),
        "system" => Ok(Role::System),
        other => Err(WireError::new(
            WireErrorKind::UnknownRole,
            format!("unknown role {}: expected user or model", quoted(other)),
        )),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The rule of [`Ids`], as slow as it likes: a response is to the oldest open call of its name.
    #[derive(Default)]
    struct NaiveIds {
        step: u64,
        open: Vec<(String, Str)>,
    }

    impl NaiveIds {
        fn give(&mut self, is_call: bool, name: &str) -> Str {
            if is_call {
                let id = Str::from(format!("{ASSIGNED}{}:{}", self.step, self.open.len()));
                self.open.push((name.to_owned(), id.clone()));
                return id;
            }
            let open = self.open.iter_mut().find(|(open, id)| open == name && !id.is_empty());
            open.map(|(_, id)| core::mem::take(id)).unwrap_or_default()
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

        #[test]
        fn ids_are_given_as_the_naive_rule_gives_them(
            steps in prop::collection::vec(prop::collection::vec((any::<bool>(), "[ab]?"), 0..20), 0..4)
        ) {
            let (mut ids, mut naive) = (Ids::default(), NaiveIds::default());
            for step in steps {
                ids.begin_step();
                naive = NaiveIds { step: naive.step + 1, open: Vec::new() };
                for (is_call, name) in step {
                    prop_assert_eq!(ids.give(is_call, &name), naive.give(is_call, &name));
                }
            }
        }
    }
}
