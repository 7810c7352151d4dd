//! Converts messages to parts that the target accepts.

use core::ops::Deref;
use std::rc::Rc;

use epitome_core::message::{CallKind, Role};
use epitome_core::{IndexBuf, OpenCallTree, Seq, Span, Tokens};
use epitome_message::{CompactionPart, Message, Part, Reasoning, Str, ToolCall, ToolResult};

use super::fields;
use super::ids::CallIds;
use super::loss::{ConversionLoss, ConversionLossKind};
use super::own_form;
use super::target::{Target, own_compactions};
use crate::json::{self, ValueKind, quote};
use crate::limits::Side;
use crate::{Format, answers};

/// A message of the caller, if the target accepts all of it unchanged, or a message that was made for the target. A
/// conversation is long: an unchanged message is not copied.
#[derive(Debug, Clone)]
pub(super) enum Told<'m> {
    Given(&'m Message),
    Made(Rc<Message>),
}

impl From<Message> for Told<'_> {
    fn from(message: Message) -> Self {
        Self::Made(Rc::new(message))
    }
}

impl Deref for Told<'_> {
    type Target = Message;

    fn deref(&self) -> &Message {
        match self {
            Self::Given(message) => message,
            Self::Made(message) => message,
        }
    }
}

/// A message for the target, and the index of its source.
#[derive(Debug)]
pub(super) struct Prepared<'m> {
    pub(super) message: Told<'m>,
    pub(super) at: usize,
}

impl Prepared<'_> {
    pub(super) fn is_instruction(&self) -> bool {
        matches!(self.message.role(), Role::System | Role::Developer)
    }
}

/// Converts the messages for the target. Content without a counterpart goes to `losses`.
pub(super) fn prepare<'m>(
    messages: impl IntoIterator<Item = &'m Message>,
    target: &Target,
    losses: &mut Vec<ConversionLoss>,
) -> Vec<Prepared<'m>> {
    let messages = messages.into_iter();
    // The groups decide which result answers which call.
    let groups = IndexBuf::<Vec<Span>, OpenCallTree>::default();
    let prepared = Vec::with_capacity(messages.size_hint().0);
    let mut preparing = Preparing { target, ids: CallIds::default(), groups, losses, prepared };
    for (at, message) in messages.enumerate() {
        match answers::pieces(message) {
            Some(pieces) => pieces.iter().for_each(|piece| preparing.push(at, piece, None)),
            None => preparing.push(at, message, Some(message)),
        }
    }
    preparing.without_blank_turns()
}

/// The state of the preparation of messages.
struct Preparing<'a, 'm> {
    target: &'a Target,
    ids: CallIds,
    groups: IndexBuf<Vec<Span>, OpenCallTree>,
    losses: &'a mut Vec<ConversionLoss>,
    prepared: Vec<Prepared<'m>>,
}

impl<'m> Preparing<'_, 'm> {
    /// Removes the turns of white space alone, if the target refuses such a turn.
    fn without_blank_turns(self) -> Vec<Prepared<'m>> {
        let Self { target, losses, mut prepared, .. } = self;
        if target.limits.takes_text("") {
            return prepared;
        }
        let is_blank = |part: &Part| matches!(part, Part::Text(text) if !target.limits.takes_text(text));
        let says = |prepared: &Prepared<'_>| !prepared.message.parts().iter().all(is_blank);
        let side = |prepared: &Prepared<'_>| Side::of(prepared.message.role());
        let turns = prepared.chunk_by(|one, next| side(one) == side(next));
        let stays: Vec<bool> =
            turns.flat_map(|turn| core::iter::repeat_n(turn.iter().any(says), turn.len())).collect();
        let mut stays = stays.into_iter();
        prepared.retain(|prepared| {
            let stays = stays.next().unwrap_or(true);
            if !stays {
                let (message, kind) = (prepared.at, ConversionLossKind::BlankText);
                losses.push(ConversionLoss { message, kind, what: String::new() });
            }
            stays
        });
        prepared
    }

    /// Adds the next message, or a piece of it. `given` is the message if it is whole.
    fn push(&mut self, at: usize, message: &Message, given: Option<&'m Message>) {
        let Self { target, ids, groups, losses, prepared } = self;
        let target = *target;
        // A vector and a tree always have room.
        let group = groups.push(message, Tokens::ZERO).map_or(Seq(0), |placed| placed.anchor);
        let is_origin = target.is_origin(message);
        let exact = is_origin && own_form::is_own(message);
        let item = if is_origin && !exact { own_form::item(message) } else { None };
        let mut here = Here { target, message, at, group, ids, losses, called: None, within: false, exact };
        if let Some(item) = &item {
            if message.wire().is_some_and(|wire| wire.text != item.text) {
                here.lose(ConversionLossKind::Field, "id");
            }
        } else if !exact {
            fields::untold(message).into_iter().for_each(|field| here.lose(ConversionLossKind::Field, field));
        }
        let mut parts = Vec::with_capacity(message.parts().len());
        parts.extend(message.parts().iter().filter_map(|part| here.part(part)));
        let name = here.name();
        if parts.is_empty() {
            here.lose(ConversionLossKind::Message, "");
            return;
        }
        let is_call = |part: &Part| matches!(part, Part::ToolCall(_));
        if target.puts_calls_last() && !parts.iter().skip_while(|part| !is_call(part)).all(is_call) {
            here.lose(ConversionLossKind::Moved, "");
        }
        let mut made = Message::new(message.role(), parts).with_attribution(message.attribution().clone());
        if let Some(id) = message.response_id() {
            made = made.with_response_id(id);
        }
        if let Some(name) = name {
            made = made.with_name(name);
        }
        // A writer takes the form of the call or of its result from the text.
        if let Some(mut wire) = item.or_else(|| message.wire().filter(|_| exact).cloned()) {
            wire.touched |= made.parts() != message.parts();
            made = made.with_wire(wire);
        }
        match prepared.last_mut().filter(|before| is_one_step(before, &made, message, target)) {
            Some(before) => {
                let parts = before.message.parts().iter().chain(made.parts()).cloned().collect();
                before.message = Message::clone(&before.message).with_parts(parts).into();
            }
            None => {
                let given = given.filter(|given| made == **given);
                prepared.push(Prepared { message: given.map_or_else(|| made.into(), Told::Given), at });
            }
        }
    }
}

/// Whether the next message was an item of the same step as the message before it. Responses has an item for each call,
/// and calls that were made together stay together.
fn is_one_step(before: &Prepared<'_>, next: &Message, source: &Message, target: &Target) -> bool {
    let items = source.wire().is_some_and(|wire| wire.format == Format::OpenaiResponses.as_str());
    let both = before.message.role() == Role::Assistant && next.role() == Role::Assistant;
    let calls = matches!(next.parts().first(), Some(Part::ToolCall(_)));
    let thought = before.message.parts().iter().all(|part| matches!(part, Part::Reasoning(_)));
    items && both && target.format != Format::OpenaiResponses && (calls || thought)
}

/// The state of one message during its conversion.
struct Here<'a> {
    target: &'a Target,
    message: &'a Message,
    at: usize,
    group: Seq,
    ids: &'a mut CallIds,
    losses: &'a mut Vec<ConversionLoss>,
    /// The name of the tool whose result the message holds.
    called: Option<Str>,
    /// Whether its parts are the parts of a result.
    within: bool,
    /// Whether its calls and results have a form that only the target has.
    exact: bool,
}

impl Here<'_> {
    fn lose(&mut self, kind: ConversionLossKind, what: impl Into<String>) {
        self.losses.push(ConversionLoss { message: self.at, kind, what: what.into() });
    }

    /// The name to write: of the speaker, or of the tool of the result if the target requires it.
    fn name(&mut self) -> Option<Str> {
        let own = self.message.name().map(Str::from);
        let is_result = self.message.role() == Role::Tool;
        if self.target.format == Format::Gemini && is_result
            || self.target.names_results() && self.called.is_some()
        {
            return self.called.take().or(own);
        }
        // A result is identified by its call.
        let own = own.filter(|_| !is_result)?;
        if self.target.has_names() {
            return Some(own);
        }
        self.lose(ConversionLossKind::Name, "");
        None
    }

    fn part(&mut self, part: &Part) -> Option<Part> {
        let own = self.target.is_origin(self.message);
        // A tool message is one result, with parts that only its format knows. A result holds no other result.
        let is_unknown = matches!(part, Part::Unknown(_));
        let is_result = matches!(part, Part::ToolResult(_));
        if self.message.role() == Role::Tool && self.within == is_result && !is_unknown {
            self.lose(ConversionLossKind::Misplaced, "");
            return None;
        }
        match part {
            Part::Text(_) => Some(part.clone()),
            Part::Reasoning(reasoning) => self.reasoning(reasoning, own),
            Part::ToolCall(call) => self.call(call, own),
            Part::ToolResult(result) => self.result(result, own),
            Part::Media(media) if self.target.takes_media(media, self.message.role(), own) => {
                if media.extent.low_detail && !own && !self.target.has_detail() {
                    self.lose(ConversionLossKind::Field, "detail");
                }
                Some(part.clone())
            }
            Part::Media(media) => {
                self.lose(ConversionLossKind::Media, media.mime.as_str());
                None
            }
            Part::Compaction(left) => self.compaction(left),
            // An output in its own form keeps all its content and all other parts of its message.
            Part::Unknown(_) if self.exact && (self.within || self.message.role() == Role::Tool) => {
                Some(part.clone())
            }
            Part::Unknown(unknown) if self.target.takes_unknown(unknown, self.message.role()) => {
                Some(part.clone())
            }
            Part::Unknown(unknown) => {
                self.lose(ConversionLossKind::UnknownPart, unknown.kind.as_str());
                None
            }
            Part::ApprovalRequest(_) | Part::ApprovalResponse(_) if self.target.takes_approvals() => {
                Some(part.clone())
            }
            Part::ApprovalRequest(_) | Part::ApprovalResponse(_) => {
                self.lose(ConversionLossKind::Approval, "");
                None
            }
        }
    }

    fn reasoning(&mut self, reasoning: &Reasoning, own: bool) -> Option<Part> {
        if own {
            return Some(Part::Reasoning(reasoning.clone()));
        }
        if reasoning.opaque.is_some() {
            self.lose(ConversionLossKind::SealedReasoning, "");
        }
        if reasoning.text.is_empty() {
            return None;
        }
        if self.target.takes_reasoning() && self.message.role() == Role::Assistant {
            return Some(Part::Reasoning(Reasoning::new(reasoning.text.clone())));
        }
        if reasoning.opaque.is_none() {
            self.lose(ConversionLossKind::Reasoning, "");
        }
        None
    }

    fn call(&mut self, call: &ToolCall, own: bool) -> Option<Part> {
        if self.message.role() != Role::Assistant {
            self.lose(ConversionLossKind::Misplaced, call.name.as_str());
            return None;
        }
        if call.kind == CallKind::Hosted {
            // Hosted calls of Gemini are complete. Those of the other formats have fields that only the text of the
            // message holds.
            if self.exact || own && self.target.format == Format::Gemini {
                return Some(Part::ToolCall(call.clone()));
            }
            self.lose(ConversionLossKind::HostedTool, call.name.as_str());
            return None;
        }
        let mut name = call.name.clone();
        if !self.target.limits.takes_name(&name) {
            self.lose(ConversionLossKind::ToolName, name.as_str());
            name = Str::from(self.target.limits.name_instead(&name));
        }
        let id = self.ids.call(self.group, &call.id, &name, self.target);
        if id != call.id && !call.id.is_empty() {
            self.lose(ConversionLossKind::CallId, "");
        }
        let mut made = ToolCall::new(id, name, call.arguments.clone());
        if self.exact && made.id == call.id && made.name == call.name {
            return Some(Part::ToolCall(made));
        }
        if json::trim(&call.arguments).is_empty() {
            made.arguments = Str::from("{}");
        } else if !is_object(&call.arguments) {
            self.lose(ConversionLossKind::Arguments, call.name.as_str());
            let input = match json::check(&call.arguments) {
                Ok(()) => call.arguments.as_str().to_owned(),
                Err(_) => quote(&call.arguments),
            };
            made.arguments = Str::from(format!(r#"{{"input":{input}}}"#));
        }
        Some(Part::ToolCall(made))
    }

    fn result(&mut self, result: &ToolResult, own: bool) -> Option<Part> {
        if self.message.role() == Role::Assistant {
            // The result of a hosted call goes to the place of its call.
            if self.exact || own && self.target.format == Format::Gemini {
                return Some(Part::ToolResult(result.clone()));
            }
            self.lose(ConversionLossKind::HostedTool, "");
            return None;
        }
        if self.message.role() != Role::Tool {
            self.lose(ConversionLossKind::Misplaced, "");
            return None;
        }
        let answered = self.ids.answer(&result.call_id);
        let (id, name) = match answered {
            Some((id, name)) => (id, Some(name)),
            None => (result.call_id.clone(), None),
        };
        self.called = name;
        // A result with another id is written anew, as the output of a function.
        self.exact &= id == result.call_id;
        self.within = true;
        let parts = result.parts.iter().filter_map(|part| self.part(part)).collect();
        self.within = false;
        let mut made = ToolResult::new(id, parts);
        made.is_error = result.is_error && self.target.marks_errors();
        if result.is_error && !made.is_error {
            self.lose(ConversionLossKind::ErrorMark, "");
        }
        Some(Part::ToolResult(made))
    }

    fn compaction(&mut self, left: &CompactionPart) -> Option<Part> {
        if left.provider == own_compactions(self.target.format) {
            return Some(Part::Compaction(left.clone()));
        }
        if left.text.is_empty() {
            self.lose(ConversionLossKind::Compaction, left.provider.as_str());
            return None;
        }
        self.lose(ConversionLossKind::CompactionAsText, left.provider.as_str());
        Some(Part::Text(left.text.clone()))
    }
}

/// Whether arguments are a JSON object.
pub(super) fn is_object(arguments: &str) -> bool {
    ValueKind::of(json::trim(arguments)) == ValueKind::Object && json::check(arguments).is_ok()
}
