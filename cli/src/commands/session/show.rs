//! `epitome session show`: the messages of the next request.

use std::borrow::Cow;

use epitome::core::{Pending, Profile, repair};
use epitome::history::History;
use epitome::message::{Message, Repaired, apply_repairs};
use serde_json::value::RawValue;

use super::line::{line, raw, redact_message};
use super::store::{Access, history, open};
use crate::amount::{counted, grouped};
use crate::args::{OneSessionArgs, RedactArgs};
use crate::failure::{Failure, Result};
use crate::output::to_json;
use crate::redact::Redactor;
use crate::scan;

pub(super) fn run(args: &OneSessionArgs, redact: &RedactArgs) -> Result<String> {
    let mut redactor = Redactor::new(redact)?;
    let text = text(args, redactor.as_mut())?;
    if let Some(redactor) = redactor {
        redactor.found().tell();
    }
    Ok(text)
}

fn text(args: &OneSessionArgs, mut redactor: Option<&mut Redactor>) -> Result<String> {
    let store = open(&args.store, Access::Read)?;
    let history = history(store, args, scan::counter("estimate")?.into())?;
    if args.json {
        let text = to_json(&request(&history)?)?;
        return Ok(redactor.map_or_else(|| text.clone(), |redactor| redactor.json(&text)));
    }
    let index = history.index();
    let mut text = String::new();
    for position in index.projection().flatten() {
        if let Some(live) = history.live().get(position as usize) {
            let message = redact_message(&live.entry.message, redactor.as_deref_mut());
            text += &line(live.key, &message, live.entry.count.tokens.0, "");
            text.push('\n');
        }
    }
    let (messages, groups, tokens) =
        (u64::from(index.messages()), u64::from(index.group_count()), index.tokens());
    let sums = format!(
        "{} in {}, {}",
        counted(messages, "message"),
        counted(groups, "group"),
        counted(tokens, "token")
    );
    Ok(format!("{text}{sums}; revision {}, {} in the log", history.revision(), grouped(history.head().0)))
}

/// The messages of the next request, each result directly behind its call. Calls that may still be running stay as they
/// are.
fn request(history: &History) -> Result<Vec<Box<RawValue>>> {
    let (messages, profile): (Vec<&Message>, _) = (history.projection().collect(), Profile::OpenaiChat);
    let steps = repair(profile, messages.iter().copied(), Pending::Running);
    let at = |position: u32| messages.get(position as usize).copied();
    let mut written = Vec::with_capacity(messages.len());
    let read = |position| Ok(at(position).map(Cow::Borrowed));
    apply_repairs(steps, profile.names_results(), read, |repaired| {
        match repaired {
            Repaired::Kept(position) => written.extend(at(position).map(raw).transpose()?),
            Repaired::Changed(_, message) | Repaired::Invented(message) => written.push(raw(&message)?),
        }
        Ok::<_, Failure>(())
    })?;
    Ok(written)
}
