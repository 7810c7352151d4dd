//! Approvals of tool calls by a person. The caller decides how to treat a call that waits or is denied.

use epitome_core::message::Role;

use super::live::Run;
use crate::message::{ApprovalAnswer, Message, Part, ToolCall};

/// Whether a person allows a call, by the messages of the conversation. The model's message may request an approval
/// ([`Part::ApprovalRequest`]), and the input of a later run answers it ([`Part::ApprovalResponse`]). Each request for
/// the call in the answer that makes it must be approved. The first answer to a request counts; an answer of the model
/// does not.
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

impl ApprovalState {
    /// The state of the call `id`, by the messages of its answer and those after it.
    fn of<'a>(id: &str, messages: impl Iterator<Item = &'a Message>) -> Self {
        let (mut requests, mut unasked) = (Vec::<(&str, Option<bool>)>::new(), None);
        for message in messages {
            let is_models = message.role() == Role::Assistant;
            for part in message.parts() {
                match part {
                    Part::ApprovalRequest(asked) if is_models && asked.call_id == *id => {
                        let is_known = requests.iter().any(|(known, _)| asked.id == **known);
                        requests.extend((!is_known).then_some((&*asked.id, None)));
                    }
                    Part::ApprovalResponse(ApprovalAnswer { approval, approved, .. }) if !is_models => {
                        let names_call = approval.call_id == *id;
                        let request = requests.iter_mut().find(|(known, _)| approval.id == **known);
                        let said = match request {
                            // Not every service names the call.
                            Some((_, said)) if names_call || approval.call_id.is_empty() => said,
                            None if names_call => &mut unasked,
                            _ => continue,
                        };
                        said.get_or_insert(*approved);
                    }
                    _ => {}
                }
            }
        }
        let said: Vec<_> = requests.iter().map(|(_, said)| *said).chain(unasked.map(Some)).collect();
        match said.as_slice() {
            [] => Self::NotRequested,
            said if said.contains(&Some(false)) => Self::Denied,
            said if said.contains(&None) => Self::Requested,
            _ => Self::Approved,
        }
    }
}

impl Run<'_> {
    /// Whether a person allows the call. A call whose approval is requested or denied must not run. An
    /// [`Agent`](crate::agent::Agent) ends its run for a requested approval, and answers a denied call with
    /// [`DENIED`](crate::agent::DENIED).
    #[must_use]
    pub fn approval_of(&self, call: &ToolCall) -> ApprovalState {
        ApprovalState::of(&call.id, self.working.since_call(&call.id).map(|(_, message)| message))
    }

    /// Whether the call waited for an approval when this run began.
    pub(crate) fn waited_for_approval(&self, call: &ToolCall) -> bool {
        let since = self.working.since_call(&call.id);
        let before = since.filter(|(number, _)| self.working.is_before_input(*number));
        ApprovalState::of(&call.id, before.map(|(_, message)| message)) == ApprovalState::Requested
    }

    /// Whether the answer that makes the call was cut off: a request for its approval may be missing.
    pub(crate) fn is_cut_off(&self, call: &ToolCall) -> bool {
        let is_call = |part: &Part| matches!(part, Part::ToolCall(made) if made.id == call.id);
        let mut since = self.working.since_call(&call.id);
        since.any(|(_, message)| message.is_incomplete() && message.parts().iter().any(is_call))
    }
}
