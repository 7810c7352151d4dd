//! Events of OpenHands, of its versions 0 and 1: a list of them, an object with such a list under `history`, `events` or `items`, or
//! the output of an evaluation, whose lines are such objects. Those of version 1 may stand on lines too.
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
//! - An action with `tool_call_metadata` is the call that the model made, as its recorded response has it; the model's text beside it
//!   stands with the first action of the response. An observation with it is the result.
//! - An action of a version that did not record the calls, such as `run` or `read`, is a call with its `args` as arguments; the
//!   observation that names it as its `cause` is the result.
//! - `finish` is the agent's last message, because no result follows. An observation without a call, such as an error, is given to the
//!   model in a user's message.
//! - Changes of state, `recall`, and `null` are no messages. The text of a recall for the model is made from a template that the file does
//!   not have.
//! - A `condensation` takes the events that it names out of the conversation and puts its `summary` there; the events before it are a
//!   branch.
//!
//! Changed texts of messages and results are written back, and events left out. Changed arguments are written to the recorded response of
//! their own action: OpenHands makes a request of it, and of several actions of one response it uses the copy of the last one. The `args`
//! of the action stay. A change to a text of the model beside its calls, or to a call that was not recorded, is refused.
//!
//! Events of version 1 have a `kind`, and an `id` that is a text:
//!
//! - A `SystemPromptEvent`, a `MessageEvent`, an `ActionEvent` (a call, and the model's thoughts and text beside it) and an
//!   `ObservationEvent` are messages, and so are `UserRejectObservation` and `AgentErrorEvent`, which are results. Others are none.
//! - A `Condensation` is read as above; its summary stands where the first forgotten event stood.
//! - The event behind one that is left out names, as its `parent_id`, the one before it.
//! - Changed thoughts and words of the model are written too. A new message is an event with a name of its own, which the event behind it
//!   names as its `parent_id`. Where the file has a condensation, a new message is refused: the condensation says behind how many events its
//!   summary stands.
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
