//! Events patched, or written anew.

use std::sync::Arc;

use epitome_core::message::Role;
use epitome_message::{Message, Part};

use super::event::{Event, Fields};
use super::v1;
use crate::WireError;
use crate::json::{self, ValueKind, patch, quote};
use crate::rewrite::{changes, form, only_text, text};
use crate::slots;

/// The event `source` as its message is now, or a new one that is a text.
pub(super) fn write_record(source: Option<&str>, messages: &[&Message]) -> Result<Option<String>, WireError> {
    let Some(source) = source else { return fresh(messages).map(Some) };
    if v1::is_event(source) {
        return slots::write(Some(source), messages, v1::pieces);
    }
    let whole: Arc<str> = Arc::from(source);
    let [now] = messages else { return Err(form("several messages in one event")) };
    let was = match Fields::of(&*whole)?.read(&whole)? {
        Event::Message(was) => was,
        // How it was read, its role says.
        Event::Caused { result, .. } if now.role() == Role::Tool => result,
        Event::Caused { said: Some(was), .. } => was,
        Event::Condensation { summary: Some(was), .. } => was,
        Event::Call { call, said, .. } => {
            let words = said.as_ref().map(|said| Part::Text(said.clone()));
            let all: Vec<&Part> = words.iter().chain(call.parts()).collect();
            let same = now.parts().iter().eq(all) || now.parts() == call.parts();
            return if same { Ok(Some(source.to_owned())) } else { Err(form("a changed call")) };
        }
        _ => return Err(form("this change")),
    };
    let mut written = source.to_owned();
    for change in changes(core::slice::from_ref(&was), messages)? {
        let new = Some(quote(text(change.new)?));
        let args = json::field(&written, "args")?.filter(|args| ValueKind::of(args) == ValueKind::Object);
        written = match args {
            None => patch(&written, &[("content", new)])?,
            Some(args) => {
                let old = was.parts().get(change.part).map(text).transpose()?.unwrap_or_default().to_owned();
                let key = said_under(args, &old)?;
                let args = patch(args, &[(key, new)])?;
                patch(&written, &[("args", Some(args))])?
            }
        };
    }
    Ok(Some(written))
}

/// The member of `args` that says `old`.
fn said_under(args: &str, old: &str) -> Result<&'static str, WireError> {
    for key in ["content", "final_thought", "thought", "summary"] {
        if json::field(args, key)?
            .is_some_and(|raw| ValueKind::of(raw) == ValueKind::Text && json::decode(raw) == old)
        {
            return Ok(key);
        }
    }
    Err(form("this change"))
}

fn fresh(messages: &[&Message]) -> Result<String, WireError> {
    let (message, text) = only_text(messages)?;
    let source = match message.role() {
        Role::User => "user",
        Role::Assistant => "agent",
        _ => return Err(form("a new message of this role")),
    };
    Ok(format!(r#"{{"source":"{source}","action":"message","args":{{"content":{}}}}}"#, quote(text)))
}
