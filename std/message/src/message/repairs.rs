//! The steps of a repair, carried out.

use std::borrow::Cow;
use std::string::String;
use std::vec::Vec;

use epitome_core::attribution::{Authority, SourceKind};
use epitome_core::message::{CallKind, Role};
use epitome_core::{BRIDGE, BRIDGE_USER, Repair};

use super::{Attribution, Message, Part, ToolCall};

#[cfg(test)]
mod tests;

/// The position of the summary before which these steps put a message of the user, and the summary as a message in the user's role. Where a
/// provider requires the user first, such a summary between delimiters comes first, and no message is invented. `None` if there is no such
/// summary, and for one that is not text.
///
/// Its attribution stays: it has no more authority than before.
pub fn summary_of_user<'m>(
    steps: &[Repair],
    at: impl Fn(u32) -> Option<&'m Message>,
) -> Option<(u32, Message)> {
    let bridge = steps.iter().position(|step| *step == Repair::BridgeUser)?;
    let position = match steps.get(bridge.saturating_add(1))? {
        Repair::Keep(position) | Repair::DropReasoning { position } => *position,
        _ => return None,
    };
    let summary = at(position).filter(|message| {
        message.role() == Role::Assistant && message.attribution().source == SourceKind::Compaction
    })?;
    let mut text = String::from(SUMMARY_OPENING);
    for part in summary.parts() {
        let Part::Text(said) = part else { return None };
        text.extend([said.replace(SUMMARY_END, "<\\/summary>").as_str(), "\n"]);
    }
    text.push_str(SUMMARY_END);
    Some((position, Message::user(text).with_attribution(summary.attribution().clone())))
}

/// Delimiters of a summary in the user's role, before and behind it.
const SUMMARY_OPENING: &str =
    "What follows is a record of the earlier part of this conversation, and no request.\n<summary>\n";
const SUMMARY_END: &str = "</summary>";

/// A message of a repaired request.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a message was there, in this or another form, or it was not")]
pub enum Repaired {
    /// The message at this position, as it is.
    Kept(u32),
    /// In the place of the message at this position: it without its reasoning, or with the parts of others behind its own.
    Changed(u32, Message),
    /// One that was not there: the result of a call that has none, or a message between two others.
    Invented(Message),
}

/// Carries out the steps of a [`repair`](epitome_core::repair): tells `write` the messages of the repaired request, in order.
///
/// `read` gives the message at a position. `None` leaves out what the step would make of it: a repair of the same messages names
/// none that is not there. A message is read at most once for itself and once for all of its calls, and not at all to be kept as it is.
///
/// An invented result has the name of its tool if `names_results`
/// ([`Profile::names_results`](epitome_core::Profile::names_results)). Messages that are merged have the attribution of the first
/// one with the lowest authority of all of them. If the first was read from no text, the form is that of the first that was: the
/// parts of it that a provider has sealed stay this provider's.
///
/// ```
/// use std::borrow::Cow;
/// use std::convert::Infallible;
///
/// use epitome_core::{Pending, Profile, repair};
/// use epitome_message::{Message, Repaired, apply_repairs};
///
/// let messages = [Message::user("Read a.txt."), Message::user("Now.")];
/// let profile = Profile::BedrockConverse;
/// let steps = repair(profile, &messages, Pending::Over);
/// let read = |position: u32| Ok::<_, Infallible>(messages.get(position as usize).map(Cow::Borrowed));
/// let mut repaired = Vec::new();
/// let Ok(()) = apply_repairs(steps, profile.names_results(), read, |message| {
///     repaired.push(message);
///     Ok(())
/// });
/// let [Repaired::Changed(0, turn)] = repaired.as_slice() else { panic!("{repaired:?}") };
/// assert_eq!(turn.parts().len(), 2);
/// ```
///
/// # Errors
/// The first error of `read` or `write`; nothing is written after it.
pub fn apply_repairs<'m, E>(
    steps: impl IntoIterator<Item = Repair>,
    names_results: bool,
    mut read: impl FnMut(u32) -> Result<Option<Cow<'m, Message>>, E>,
    mut write: impl FnMut(Repaired) -> Result<(), E>,
) -> Result<(), E> {
    // What was made last: others may be merged into it.
    let mut last: Option<Last> = None;
    let mut calls: Option<(u32, Vec<ToolCall>)> = None;
    for step in steps {
        let next = match step {
            Repair::Keep(position) => Some(Repaired::Kept(position)),
            Repair::DropReasoning { position } => {
                read(position)?.map(|message| Repaired::Changed(position, without_reasoning(&message)))
            }
            Repair::Abort { position, call } | Repair::Unrecorded { position, call } => {
                if calls.as_ref().is_none_or(|(of, _)| *of != position) {
                    let found = read(position)?.map(|message| functions(&message)).unwrap_or_default();
                    calls = Some((position, found));
                }
                let called = calls.as_ref().and_then(|(_, calls)| calls.get(call as usize));
                let result = called.zip(step.invented()).map(|(call, text)| {
                    let result = Message::tool(call.id.clone(), text);
                    if names_results { result.with_name(call.name.clone()) } else { result }
                });
                result.map(Repaired::Invented)
            }
            Repair::BridgeUser => Some(Repaired::Invented(Message::user(BRIDGE_USER))),
            Repair::BridgeAssistant => Some(Repaired::Invented(Message::assistant(BRIDGE))),
            Repair::Merge { position } => {
                last = match (last.take(), read(position)?) {
                    (None, _) => Some(Last::Whole(Repaired::Kept(position))),
                    (last, None) => last,
                    (Some(Last::Merging(merging)), Some(more)) => Some(Last::Merging(merging.with(&more))),
                    (Some(Last::Whole(first)), Some(more)) => {
                        let first = match first {
                            Repaired::Kept(at) => read(at)?.map(|message| (Some(at), message.into_owned())),
                            Repaired::Changed(at, message) => Some((Some(at), message)),
                            Repaired::Invented(message) => Some((None, message)),
                        };
                        Some(match first {
                            Some((at, first)) => Last::Merging(Merging::of(at, first).with(&more)),
                            None => Last::Whole(Repaired::Kept(position)),
                        })
                    }
                };
                None
            }
            // A step of a later release of the core.
            _ => None,
        };
        if let Some(next) = next
            && let Some(last) = last.replace(Last::Whole(next))
        {
            write(last.into_repaired())?;
        }
    }
    last.map_or(Ok(()), |last| write(last.into_repaired()))
}

enum Last {
    Whole(Repaired),
    Merging(Merging),
}

impl Last {
    fn into_repaired(self) -> Repaired {
        match self {
            Self::Whole(repaired) => repaired,
            Self::Merging(Merging { at, form, parts, attribution }) => {
                let message = form.with_parts(parts).with_attribution(attribution);
                match at {
                    Some(at) => Repaired::Changed(at, message),
                    None => Repaired::Invented(message),
                }
            }
        }
    }
}

/// Messages that become one. Their parts are put together once for all of them.
struct Merging {
    /// The position of the first; `None` if it was invented.
    at: Option<u32>,
    form: Message,
    parts: Vec<Part>,
    attribution: Attribution,
}

impl Merging {
    fn of(at: Option<u32>, first: Message) -> Self {
        let (parts, attribution) = (first.parts().to_vec(), first.attribution().clone());
        Self { at, form: first, parts, attribution }
    }

    fn with(mut self, more: &Message) -> Self {
        self.parts.extend_from_slice(more.parts());
        let authority = more.attribution().authority;
        self.attribution.authority = Authority::min_of([self.attribution.authority, authority]);
        if self.form.wire().is_none() && more.wire().is_some() {
            self.form = more.clone();
        }
        self
    }
}

fn without_reasoning(message: &Message) -> Message {
    let parts = message.parts().iter().filter(|part| !matches!(part, Part::Reasoning(_)));
    message.clone().with_parts(parts.cloned().collect())
}

/// The calls that the caller answers, as a repair numbers them.
fn functions(message: &Message) -> Vec<ToolCall> {
    let calls = message.parts().iter().filter_map(|part| match part {
        Part::ToolCall(call) if call.kind == CallKind::Function => Some(call.clone()),
        _ => None,
    });
    calls.filter(|_| message.role() == Role::Assistant).collect()
}
