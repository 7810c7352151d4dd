//! Approvals: whether a person allows a call.

use core::fmt;

use epitome_core::message::Role;

use crate::message::{Message, Part};

/// Whether a person allows a call, as the conversation says: the model's message may ask for it ([`Part::ApprovalRequest`]), and the input
/// of a later run answers ([`Part::ApprovalResponse`]).
///
/// ```
/// use epitome_core::message::Role;
/// use epitome_std::message::{Approval, ApprovalAnswer, Message, Part, ToolCall};
/// use epitome_std::run::{ApprovalState, ModelResponse, Run, RunOptions, RunSettings};
/// use epitome_std::session::AgentSession;
///
/// # futures::executor::block_on(async {
/// let (settings, options) = (RunSettings::new("helper"), RunOptions::default());
/// let mut session = AgentSession::new();
/// let mut run = Run::begin(&settings, &mut session, vec![Message::user("Clean up.")], &options).await?;
/// let prompt = run.prompt().await?;
/// let (call, asked) = (ToolCall::new("c1", "remove", "{}"), Approval::new("a1", "c1"));
/// let parts = vec![Part::ToolCall(call), Part::ApprovalRequest(asked.clone())];
/// run.record(prompt.handle, ModelResponse::new(vec![Message::new(Role::Assistant, parts)])).await?;
/// let calls = run.pending_calls();
/// assert_eq!(run.approval_of(&calls[0]), ApprovalState::Requested);
/// let denied = Part::ApprovalResponse(ApprovalAnswer::new(asked, false));
/// run.answer(vec![Message::new(Role::User, vec![denied])])?;
/// assert_eq!(run.approval_of(&calls[0]), ApprovalState::Denied);
/// # Ok::<(), epitome_std::run::RunError>(())
/// # }).unwrap();
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ApprovalState {
    /// Nothing asks for an approval: the call may run.
    NotRequested,
    /// An approval is requested, and there is no answer: the call must not run.
    Requested,
    /// A person allows the call.
    Approved,
    /// A person does not allow the call.
    Denied,
}

impl fmt::Display for ApprovalState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotRequested => "no approval is requested",
            Self::Requested => "the approval is open",
            Self::Approved => "approved",
            Self::Denied => "denied",
        })
    }
}

impl ApprovalState {
    /// The state of the call `id`, which is made in the first of these messages. The latest request counts, and the first answer to it.
    /// A model cannot answer.
    pub(super) fn of<'a>(id: &str, messages: impl Iterator<Item = &'a Message>) -> Self {
        let (mut state, mut latest) = (Self::NotRequested, "");
        for message in messages {
            let is_models = message.role() == Role::Assistant;
            for part in message.parts() {
                match part {
                    Part::ApprovalRequest(asked) if is_models && asked.call_id == *id => {
                        (state, latest) = (Self::Requested, asked.id.as_str());
                    }
                    Part::ApprovalResponse(answer) if !is_models => {
                        let is_of_call = match state {
                            Self::Requested => answer.approval.id == *latest,
                            Self::NotRequested => answer.approval.call_id == *id,
                            Self::Approved | Self::Denied => false,
                        };
                        if is_of_call {
                            state = if answer.approved { Self::Approved } else { Self::Denied };
                        }
                    }
                    _ => {}
                }
            }
        }
        state
    }
}
