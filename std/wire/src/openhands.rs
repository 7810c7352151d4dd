//! Events of OpenHands, of its versions 0 and 1. A text is a list of events, an object with such a list under
//! `history`, `events` or `items`, or the output of an evaluation, whose lines are such objects.
//!
//! Events of version 1 may also be one event per line.
//!
//! ```
//! use epitome_core::message::Role;
//! use epitome_wire::{ReadOptions, read};
//!
//! let text = r#"[{"id": 0, "source": "user", "action": "message", "args": {"content": "Hi"}},
//!   {"id": 1, "source": "environment", "observation": "agent_state_changed", "content": "", "extras": {}},
//!   {"id": 2, "source": "agent", "action": "message", "args": {"content": "Yes?"}}]"#;
//! let transcript = read(text, &ReadOptions::default())?;
//! let roles: Vec<_> = transcript.conversations()[0].messages().map(|message| message.role()).collect();
//! assert_eq!(roles, [Role::User, Role::Assistant]);
//! # Ok::<(), epitome_wire::WireError>(())
//! ```
//!
//! - An action with `tool_call_metadata` is the call that the model made, in the form of its recorded response. The
//!   model's text of the response is in the message of the first action of the response. An observation with this field
//!   is the result.
//! - An action of a version that did not record the calls, such as `run` or `read`, is a call with its `args` as
//!   arguments. The observation with this action as its `cause` is the result.
//! - `finish` is the agent's last message, because no result follows. An observation without a call, such as an error,
//!   is sent to the model in a user's message.
//! - Changes of state, `recall`, and `null` are no messages. OpenHands makes the text of a recall for the model from a
//!   template that the file does not have.
//! - A `condensation` takes the named events out of the conversation and puts its `summary` there. The events before it
//!   are a branch.
//!
//! The writer changes texts of messages and results, and leaves out events. Changed arguments are written to the
//! recorded response of their own action: OpenHands makes a request of it, and of several actions of one response it
//! uses the copy in the last one. The `args` of the action stay. A change to the model's text of a response with calls,
//! or to a call that was not recorded, is refused.
//!
//! Events of version 1 have a `kind`, and an `id` that is a text:
//!
//! - A `SystemPromptEvent`, a `MessageEvent`, an `ActionEvent` (a call with the model's thoughts and text) and an
//!   `ObservationEvent` are messages. `UserRejectObservation` and `AgentErrorEvent` are messages too: results. Other
//!   events are no messages.
//! - A `Condensation` is read in the same way. Its summary takes the place of the first forgotten event.
//! - The event behind an omitted event names the event before the omitted one as its `parent_id`.
//! - Changed thoughts and texts of the model are written too. A new message is an event with an id of its own, and the
//!   event behind it has this id as its `parent_id`. If the file has a condensation, a new message is refused: the
//!   condensation holds the number of events before its summary.
//!
//! The form of version 1 is that of its sources (`openhands-sdk/openhands/sdk/event` of
//! <https://github.com/OpenHands/software-agent-sdk>, version 1.43, August 2026).

mod event;
mod session;
mod spec;
mod v1;
mod write;

pub(crate) use spec::SPEC;

/// The format's name in [`WireText`](epitome_message::WireText).
pub const FORMAT: &str = super::Format::OpenHands.as_str();

#[cfg(test)]
mod tests;
#[cfg(test)]
mod v1_tests;
