//! Owned messages with shared text.

mod attribution;
mod part;
mod repairs;
mod text;
mod view;

pub use attribution::{Attribution, LABEL_EPHEMERAL, LABEL_IMPORTANT};
pub use part::{
    Approval, ApprovalAnswer, CompactionPart, Media, MediaSource, NESTING_MAX, Part, Reasoning, ToolCall,
    ToolResult, UnknownPart,
};
pub use repairs::{Repaired, apply_repairs, summary_of_user};
pub use text::Str;

use std::borrow::Cow;
use std::sync::LazyLock;

use epitome_core::message::Role;

/// One message, owned. Cloning is cheap, because text is shared.
///
/// A message from a wire reader also has its source text. If the message is unchanged, a writer of the same format
/// returns this text exactly, with its unknown fields.
///
/// ```
/// use epitome_message::{Message, Part, ToolCall};
/// use epitome_core::message::Role;
///
/// let question = Message::user("What is in notes.txt?");
/// let call = Message::new(Role::Assistant, vec![Part::ToolCall(ToolCall::new("c1", "read", r#"{"path":"notes.txt"}"#))]);
/// assert_eq!(question.role(), Role::User);
/// assert_eq!(call.parts().len(), 1);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    role: Role,
    parts: Vec<Part>,
    /// `None` for the default attribution of a caller's message with this role.
    attribution: Option<Box<Attribution>>,
    /// `None` if the message has no name and no ids.
    names: Option<Box<Names>>,
    wire: Option<WireText>,
    incomplete: bool,
    pruned: bool,
}

const _: () = assert!(size_of::<Message>() <= 104, "a conversation holds very many of these");

/// The name and the ids of a message. Most messages have none.
#[derive(Debug, Clone, PartialEq, Default)]
struct Names {
    id: Option<Str>,
    response_id: Option<Str>,
    speaker: Option<Str>,
}

/// The text that a message was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WireText {
    /// The name of the format, for example `openai-chat`.
    pub format: Str,
    /// The message's source text.
    pub text: Str,
    /// Whether the message has been changed since. A writer then takes only unknown fields from the text.
    pub touched: bool,
    /// Whether the message continues the record of the message before it, so that a writer joins the two again. A
    /// record with results and a user's words becomes several messages, each with its part of the record as its
    /// text.
    pub rejoin: bool,
}

impl WireText {
    /// The text of an unchanged message in `format`.
    #[must_use]
    pub const fn new(format: Str, text: Str) -> Self {
        Self { format, text, touched: false, rejoin: false }
    }

    /// Sets whether the message continues the record of the message before it.
    #[must_use]
    pub const fn with_rejoin(mut self, rejoin: bool) -> Self {
        self.rejoin = rejoin;
        self
    }
}

impl Message {
    /// A message from the caller.
    #[must_use]
    pub fn new(role: Role, parts: Vec<Part>) -> Self {
        Self { role, parts, attribution: None, names: None, wire: None, incomplete: false, pruned: false }
    }

    /// A system message: instructions from the operator.
    #[must_use]
    pub fn system(text: impl Into<Str>) -> Self {
        Self::new(Role::System, vec![Part::Text(text.into())])
    }

    /// A message of the user.
    #[must_use]
    pub fn user(text: impl Into<Str>) -> Self {
        Self::new(Role::User, vec![Part::Text(text.into())])
    }

    /// A message of the model.
    #[must_use]
    pub fn assistant(text: impl Into<Str>) -> Self {
        Self::new(Role::Assistant, vec![Part::Text(text.into())])
    }

    /// A message with the result of one call.
    #[must_use]
    pub fn tool(call_id: impl Into<Str>, text: impl Into<Str>) -> Self {
        let parts = vec![Part::Text(text.into())];
        Self::new(Role::Tool, vec![Part::ToolResult(ToolResult::new(call_id, parts))])
    }

    /// Sets the attribution. It is not part of the wire text.
    #[must_use]
    pub fn with_attribution(mut self, attribution: Attribution) -> Self {
        self.attribution = (attribution != *of_callers(self.role)).then(|| Box::new(attribution));
        self
    }

    /// Sets the caller's label; see [`Attribution::with_label`].
    #[must_use]
    pub fn with_label(self, label: impl Into<Str>) -> Self {
        let attribution = self.attribution().clone().with_label(label);
        self.with_attribution(attribution)
    }

    /// Sets the provider's id of the message. It is not part of the wire text. Of the formats that write new messages, only
    /// `agent-framework` has a place for it.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<Str>) -> Self {
        self.names_mut().id = Some(id.into());
        self
    }

    /// Sets the provider's id of the response that the message is part of. Like [`Message::with_id`], it is not
    /// part of the wire text.
    #[must_use]
    pub fn with_response_id(mut self, id: impl Into<Str>) -> Self {
        self.names_mut().response_id = Some(id.into());
        self
    }

    /// Sets the name of the speaker.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<Str>) -> Self {
        self.names_mut().speaker = Some(name.into());
        self.touched()
    }

    /// Sets whether the message is incomplete: its stream was left before the end. The mark is stored. It is not
    /// part of the wire text.
    #[must_use]
    pub const fn with_incomplete(mut self, incomplete: bool) -> Self {
        self.incomplete = incomplete;
        self
    }

    /// Replaces the parts.
    #[must_use]
    pub fn with_parts(mut self, parts: Vec<Part>) -> Self {
        self.parts = parts;
        self.touched()
    }

    /// The message in the form for `model`. A compaction that the provider made for another of its models gets the
    /// name of an unknown provider. Writers then write its text, as for another provider.
    ///
    /// ```
    /// use epitome_core::message::Role;
    /// use epitome_message::{CompactionPart, Message, Part};
    ///
    /// let left = CompactionPart::new("openai", "They spoke of Oslo.", Some("gAAAA".into())).with_model("gpt-5.1");
    /// let message = Message::new(Role::Assistant, vec![Part::Compaction(left)]);
    /// assert_eq!(*message.for_model("gpt-5.1"), message);
    /// let other = message.for_model("gpt-5.1-mini");
    /// assert!(matches!(&other.parts()[0], Part::Compaction(left) if &*left.provider == "openai for gpt-5.1"));
    /// ```
    #[must_use]
    pub fn for_model(&self, model: &str) -> Cow<'_, Self> {
        let strange = |part: &Part| matches!(part, Part::Compaction(left) if !left.is_for_model(model));
        if !self.parts().iter().any(strange) {
            return Cow::Borrowed(self);
        }
        let parts = self.parts().iter().cloned().map(|part| match part {
            Part::Compaction(mut left) if !left.is_for_model(model) => {
                left.provider = format!("{} for {}", &*left.provider, &*left.model).into();
                Part::Compaction(left)
            }
            part => part,
        });
        Cow::Owned(self.clone().with_parts(parts.collect()))
    }

    /// Sets the text that the message was read from. For wire readers: call it last.
    #[must_use]
    pub fn with_wire(mut self, wire: WireText) -> Self {
        self.wire = Some(wire);
        // Vectors of a reader have spare capacity, which would stay as long as the message.
        self.parts.shrink_to_fit();
        for part in &mut self.parts {
            if let Part::ToolResult(result) = part {
                result.parts.shrink_to_fit();
            }
        }
        self
    }

    /// The parts, in order.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The text of the message: its text parts, joined; without tool results, reasoning and media.
    ///
    /// ```
    /// use epitome_core::message::Role;
    /// use epitome_message::{Message, Part, Reasoning};
    ///
    /// let thought = Part::Reasoning(Reasoning::new("A greeting."));
    /// let message = Message::new(Role::Assistant, vec![thought, Part::Text("Hel".into()), Part::Text("lo.".into())]);
    /// assert_eq!(message.text(), "Hello.");
    /// ```
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        part::joined(&self.parts)
    }

    /// The parts, for a reader that completes them after it has read further data. The message counts as unchanged.
    pub fn parts_mut(&mut self) -> &mut [Part] {
        &mut self.parts
    }

    /// The parts of the message, without its other fields.
    #[must_use]
    pub fn into_parts(self) -> Vec<Part> {
        self.parts
    }

    /// The role of the speaker.
    #[must_use]
    pub const fn role(&self) -> Role {
        self.role
    }

    /// The attribution: author, source, authority and retention.
    #[must_use]
    pub fn attribution(&self) -> &Attribution {
        self.attribution.as_deref().unwrap_or_else(|| of_callers(self.role))
    }

    /// The provider's id of the message. It may repeat within a conversation.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.names.as_ref()?.id.as_deref()
    }

    /// The provider's id of the response that the message is part of.
    #[must_use]
    pub fn response_id(&self) -> Option<&str> {
        self.names.as_ref()?.response_id.as_deref()
    }

    /// The speaker's name.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.names.as_ref()?.speaker.as_deref()
    }

    /// Whether the message is incomplete: see [`Message::with_incomplete`].
    #[must_use]
    pub const fn is_incomplete(&self) -> bool {
        self.incomplete
    }

    /// Whether the content of the message was pruned: see [`Message::into_pruned`].
    #[must_use]
    pub const fn is_pruned(&self) -> bool {
        self.pruned
    }

    /// The rest of the message after a prune: its role, its attribution without the label, and the ids of the calls
    /// and approvals that it answers. It is neither sent nor shown.
    ///
    /// ```
    /// use epitome_message::Message;
    ///
    /// let left = Message::tool("call-1", "a long answer").into_pruned();
    /// assert!(left.is_pruned() && !format!("{left:?}").contains("long"));
    /// ```
    #[must_use]
    pub fn into_pruned(self) -> Self {
        let answer = |part: Part| match part {
            Part::ToolResult(ToolResult { call_id, .. }) => {
                Some(Part::ToolResult(ToolResult::new(call_id, Vec::new())))
            }
            Part::ApprovalResponse(answer) => Some(Part::ApprovalResponse(answer)),
            _ => None,
        };
        let mut attribution = self.attribution().clone();
        attribution.label = None;
        let parts = self.parts.into_iter().filter_map(answer).collect();
        Self::new(self.role, parts).with_attribution(attribution).with_pruned(true)
    }

    /// Sets whether the message is the rest of a deleted one. For readers of stored messages.
    pub const fn with_pruned(mut self, pruned: bool) -> Self {
        self.pruned = pruned;
        self
    }

    /// The text that the message was read from, if a wire reader made it.
    #[must_use]
    pub const fn wire(&self) -> Option<&WireText> {
        self.wire.as_ref()
    }

    /// Removes the text that the message was read from.
    pub fn without_wire(mut self) -> Self {
        self.wire = None;
        self
    }

    fn names_mut(&mut self) -> &mut Names {
        self.names.get_or_insert_default()
    }

    fn touched(mut self) -> Self {
        if let Some(wire) = &mut self.wire {
            wire.touched = true;
        }
        self
    }
}

/// The default attribution of a caller's message with this role; a shared value.
fn of_callers(role: Role) -> &'static Attribution {
    static EACH: LazyLock<[Attribution; 5]> = LazyLock::new(|| {
        [Role::System, Role::Developer, Role::User, Role::Assistant, Role::Tool]
            .map(|role| Attribution::caller(role.authority()))
    });
    let [system, developer, user, assistant, tool] = &*EACH;
    match role {
        Role::System => system,
        Role::Developer => developer,
        Role::User => user,
        Role::Assistant => assistant,
        _ => tool,
    }
}
