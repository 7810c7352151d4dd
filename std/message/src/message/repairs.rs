//! Application of the steps of a repair to messages.

use std::borrow::Cow;
use std::string::String;
use std::vec::Vec;

use epitome_core::attribution::{Authority, SourceKind};
use epitome_core::message::{CallKind, Role};
use epitome_core::{BRIDGE, BRIDGE_USER, Repair};

use super::{Attribution, Message, Part, ToolCall};

#[cfg(test)]
mod tests;

/// The position of the summary before which these steps insert a message of the user, and this summary as a message
/// of the user.
///
/// Use it for a provider that requires the user first: the summary, between delimiters, can be first, and no
/// message has to be invented. `None` if there is no such summary, or if it is not text. The message keeps the
/// attribution of the summary, and so its authority.
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

/// Delimiters before and behind a summary in the user's role.
const SUMMARY_OPENING: &str =
    "What follows is a record of the earlier part of this conversation, and no request.\n<summary>\n";
const SUMMARY_END: &str = "</summary>";

/// A message of a repaired request.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a message was there, in this or another form, or it was not")]
pub enum Repaired {
    /// The message at this position, as it is.
    Kept(u32),
    /// The message at this position with a change: without its reasoning, or with the parts of other messages
    /// behind its own.
    Changed(u32, Message),
    /// A new message: the result of a call without one, or a message between two others.
    Invented(Message),
}

/// Applies the steps of a [`repair`](epitome_core::repair): calls `write` with the messages of the repaired
/// request, in order.
///
/// `read` returns the message at a position. With `None`, the result of the step is left out; a repair of the same
/// messages refers only to messages that exist. A message is read at most once for itself and once for all of its
/// calls. A message that is kept unchanged is not read.
///
/// An invented result has the name of its tool if `names_results`
/// ([`Profile::names_results`](epitome_core::Profile::names_results)). Merged messages have the attribution of the
/// first one, with the lowest authority of all. If the first message has no source text, the form is that of the
/// first message with one. The parts that a provider has sealed thus stay with this provider.
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
    // The last result, into which further messages may be merged.
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

/// Messages that are merged into one. Their parts are joined once.
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

/// The calls that the caller answers, in the numbering of a repair.
fn functions(message: &Message) -> Vec<ToolCall> {
    let calls = message.parts().iter().filter_map(|part| match part {
        Part::ToolCall(call) if call.kind == CallKind::Function => Some(call.clone()),
        _ => None,
    });
    calls.filter(|_| message.role() == Role::Assistant).collect()
}
