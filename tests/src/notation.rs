//! Conversations in a compact notation, one message a line: `a 20 c1 c2 response=r1`.
//!
//! A line begins with the role (`s` system, `d` developer, `u` user, `a` assistant, `t` tool) and the size in tokens.
//! Words follow: the ids of calls (`a`) or of the answered call (other roles), and flags. A message without other parts
//! gets a text.
//! - ids: `""` is the empty id, and `x*65` an `x` 65 times
//! - `pin`, `ephemeral`: the retention; `context`, `history`, `summary`: the source; `response=ID`
//! - a part: `reasoning`, `item` (reasoning with an id), `signed` (reasoning with a signature), `compacted` (the
//!   compaction item of a provider), `unknown`, `hosted=ID` (a hosted call and its result), `ran=ID` (such a call
//!   alone), `gave=ID` (such a result alone), `sealed=ID` (such a result, encrypted), `asks=ID`, `approves=ID`,
//!   `image`, `text`, `text=WORD`
//! - `empty`: no part at all

use epitome_core::attribution::{Retention, SourceKind};
use epitome_core::message::Role;

use crate::message::{Message, Part};

/// Parses the messages of `text`.
///
/// # Errors
/// The first line that is not a message.
pub fn parse(text: &str) -> Result<Vec<Message>, String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(|line| message(line).ok_or_else(|| format!("not a message: {line}"))).collect()
}

fn message(line: &str) -> Option<Message> {
    let mut words = line.split_whitespace();
    let role = match words.next()? {
        "s" => Role::System,
        "d" => Role::Developer,
        "u" => Role::User,
        "a" => Role::Assistant,
        "t" => Role::Tool,
        _ => return None,
    };
    let mut message = Message::new(role, Vec::new(), words.next()?.parse().ok()?);
    let mut empty = false;
    for word in words {
        let (flag, value) = word.split_once('=').unwrap_or((word, ""));
        match flag {
            "pin" => message.retention = Retention::Pinned,
            "ephemeral" => message.retention = Retention::Ephemeral,
            "context" => message.source = SourceKind::Context,
            "history" => message.source = SourceKind::History,
            "summary" => message.source = SourceKind::Compaction,
            "response" => message.response = Some(value.to_owned()),
            "reasoning" => message.parts.push(Part::Reasoning("Hm.".into())),
            "hosted" => message.parts.extend([Part::HostedCall(id(value)), Part::Result(id(value))]),
            "ran" => message.parts.push(Part::HostedCall(id(value))),
            "gave" => message.parts.push(Part::Result(id(value))),
            "sealed" => message.parts.push(Part::Sealed(id(value))),
            "asks" => message.parts.push(Part::Asks(id(value))),
            "approves" => message.parts.push(Part::Approves(id(value))),
            "item" => message.parts.push(Part::Item),
            "signed" => message.parts.push(Part::Signed),
            "compacted" => message.parts.push(Part::Compacted),
            "unknown" => message.parts.push(Part::Unknown),
            "image" => message.parts.push(Part::Image),
            "text" if value.is_empty() => message.parts.push(Part::Text("Fine.".into())),
            "text" => message.parts.push(Part::Text(value.into())),
            "empty" => empty = true,
            _ if role == Role::Assistant => message.parts.push(Part::Call(id(word))),
            _ => message.parts.push(Part::Result(id(word))),
        }
    }
    if message.parts.is_empty() && !empty {
        message.parts.push(Part::Text("Fine.".into()));
    }
    Some(message)
}

fn id(word: &str) -> String {
    match word.split_once('*') {
        Some((unit, times)) => unit.repeat(times.parse().unwrap_or(1)),
        None if word == "\"\"" => String::new(),
        None => word.to_owned(),
    }
}
