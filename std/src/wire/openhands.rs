//! Events of OpenHands (up to its version 0.x): a list of actions and observations, an object with `history`, or the
//! output of an evaluation, whose lines are such objects.
//!
//! ```
//! use epitome_core::message::Role;
//! use epitome_std::wire::{ReadOptions, read};
//!
//! let text = r#"[{"id": 0, "source": "user", "action": "message", "args": {"content": "Hi"}},
//!   {"id": 1, "source": "environment", "observation": "agent_state_changed", "content": "", "extras": {}},
//!   {"id": 2, "source": "agent", "action": "message", "args": {"content": "Yes?"}}]"#;
//! let transcript = read(text, &ReadOptions::default())?;
//! let roles: Vec<_> = transcript.conversations()[0].messages().map(|message| message.role()).collect();
//! assert_eq!(roles, [Role::User, Role::Assistant]);
//! # Ok::<(), epitome_std::wire::WireError>(())
//! ```
//!
//! - An action with `tool_call_metadata` is the call that the model made, as its recorded response says; what the model
//!   said beside it stands with the first action of the response. An observation with it is the result.
//! - An action of a version that did not record the calls, such as `run` or `read`, is a call with its `args` as arguments; the
//!   observation that names it as its `cause` is the result.
//! - `finish` is what the agent said at the end, because no result follows. An observation without a call, such as an
//!   error, is told to the model in a user's message.
//! - Changes of state, `recall`, and `null` are no messages. What a recall shows to the model is made from a template that
//!   the file does not have.
//! - A `condensation` takes the events that it names out of the conversation and puts its `summary` there; what was before
//!   is a branch.
//!
//! Written back are changed texts of messages and results, and events left out. What a model said beside its calls, and
//! the calls, stand in several places of the file, and a change to them is refused.

mod event;
mod session;
mod spec;
mod write;

pub(crate) use spec::SPEC;

/// The format's name in [`WireText`](crate::message::WireText).
pub const FORMAT: &str = super::Format::OpenHands.as_str();

#[cfg(test)]
mod tests;
