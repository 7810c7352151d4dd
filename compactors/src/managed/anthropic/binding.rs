//! Signed thinking, which is bound to the content before it.

use std::string::{String, ToString as _};
use std::vec::Vec;

use epitome_core::message::{MessageView, PartView};
use epitome_core::{GroupKind, Plan, Profile, Verdict};
use serde_json::Value;

use super::body::{Body, array, quote};
use super::error::{MappingError, shape};

/// The name in `anthropic-beta` with which the API drops mismatched thinking.
pub const BINDING_BETA: &str = "thinking-binding-controls-2026-08-01";

/// Models that check signed thinking against all content before it, for accounts made since 2026-08-31. Source:
/// <https://platform.claude.com/docs/en/build-with-claude/preserved-thinking>
const BOUND: &[&str] = &[
    "claude-fable-5-1",
    "claude-fable-5-2",
    "claude-mythos-5-1",
    "claude-mythos-5-2",
    "claude-opus-5-5",
    "claude-sonnet-5-5",
    "claude-haiku-5-5",
];

/// The remedy for a plan that changes content before signed thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Remedy {
    /// No thinking is bound to the changed content: carry out the plan.
    Nothing,
    /// Let the provider write the summary: the thinking behind it stays valid.
    ProviderSummary,
    /// Remove all thinking from the kept messages ([`strip_thinking`]).
    StripThinking,
    /// Let the API drop mismatched thinking ([`drop_mismatched`]).
    DropBlock,
    /// Do not carry out the plan now: the open turn needs its thinking. Only append until the turn is closed.
    AppendOnly,
}

/// The facts about a model and a conversation that choose a [`Remedy`].
///
/// ```
/// use epitome_compactors::managed::anthropic::BoundThinking;
/// use epitome_core::Profile;
///
/// assert!(BoundThinking::of("us.anthropic.claude-opus-5-5-v1:0", Profile::Anthropic).is_bound());
/// assert!(!BoundThinking::of("claude-opus-4-8", Profile::Anthropic).is_bound());
/// assert!(!BoundThinking::of("claude-opus-5-5", Profile::OpenaiChat).is_bound());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoundThinking {
    bound: bool,
    provider_summary: bool,
    drop_block: bool,
}

impl BoundThinking {
    /// The facts about the model of this name, in requests of this profile. They assume no summary by the provider,
    /// and no beta that drops blocks.
    #[must_use]
    pub fn of(model: &str, profile: Profile) -> Self {
        let model = model.to_ascii_lowercase();
        let is = |name: &&str| {
            // `claude-opus-5-55` would be another model.
            let rest = model.split_once(*name).map(|(_, rest)| rest);
            rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()))
        };
        let bound = profile == Profile::Anthropic && BOUND.iter().any(is);
        Self { bound, provider_summary: false, drop_block: false }
    }

    /// Sets whether the provider can summarize the groups that the plan replaces.
    #[must_use]
    pub const fn with_provider_summary(mut self, can: bool) -> Self {
        self.provider_summary = can;
        self
    }

    /// Sets whether requests name [`BINDING_BETA`].
    #[must_use]
    pub const fn with_drop_block(mut self, can: bool) -> Self {
        self.drop_block = can;
        self
    }

    /// Whether the model checks signed thinking against the content before it.
    #[must_use]
    pub const fn is_bound(self) -> bool {
        self.bound
    }

    /// The remedy that `plan` needs. `messages` are the messages of its index, in order.
    ///
    /// It is the first that applies, in this order: nothing; the provider's summary, if the plan changes nothing
    /// else before the first thinking; dropped blocks; stripped thinking, unless the open turn has some; append
    /// only.
    pub fn remedy<M: MessageView>(self, plan: &Plan<'_>, messages: &[M]) -> Remedy {
        let unchanged = plan.stable_prefix().messages as usize;
        let signed = |at: u32| messages.get(at as usize).is_some_and(has_signed_thinking);
        // Signed thinking behind the first change. A change is a message that was left out, or a shortened part of
        // a kept one.
        if !self.bound || !plan.projection().flatten().skip(unchanged).any(signed) {
            return Remedy::Nothing;
        }
        if self.provider_summary && is_summary_alone(plan) {
            return Remedy::ProviderSummary;
        }
        if self.drop_block {
            return Remedy::DropBlock;
        }
        let index = plan.index();
        let open = index.groups().next_back().filter(|newest| newest.kind() == GroupKind::Exchange);
        let of_open = index.groups().filter(|group| open.is_some_and(|open| open.turn() == group.turn()));
        match of_open.flat_map(|group| group.positions()).flatten().any(signed) {
            true => Remedy::AppendOnly,
            false => Remedy::StripThinking,
        }
    }
}

/// Whether a plan only replaces all messages before the kept ones by one summary.
fn is_summary_alone(plan: &Plan<'_>) -> bool {
    let mut summaries = plan.summaries();
    let (Some(gap), None, None) = (summaries.next(), summaries.next(), plan.shortened().next()) else {
        return false;
    };
    plan.index().groups().all(|group| match plan.verdict(&group) {
        Verdict::Keep => {
            group.is_instruction() || group.kind() == GroupKind::Orphan || group.leader() > gap.first.leader()
        }
        Verdict::Replace => true,
        _ => false,
    })
}

fn has_signed_thinking<M: MessageView>(message: &M) -> bool {
    let mut signed = false;
    message.for_each_part(&mut |part| {
        signed |= matches!(part, PartView::Reasoning(reasoning) if reasoning.opaque.is_some());
    });
    signed
}

/// The request without thinking. A message that has only thinking is removed; other messages stay byte for byte.
///
/// # Errors
/// If `request` is no request.
pub fn strip_thinking(request: &str) -> Result<String, MappingError> {
    let body = Body::of(request)?;
    let mut stripped: Vec<String> = Vec::new();
    for message in body.messages()? {
        if !message.blocks.iter().any(|block| block.is_thinking()) {
            stripped.push(message.text.to_string());
            continue;
        }
        let rest = message.blocks.iter().filter(|block| !block.is_thinking()).map(|block| block.text);
        let content = array(rest);
        if content.len() > "[]".len() {
            let message = [r#"{"role":"#, &quote(&message.role), r#","content":"#, &content, "}"].concat();
            stripped.push(message);
        }
    }
    Ok(body.with(&[("messages", Some(&array(stripped.iter().map(String::as_str))))]))
}

/// The request with the option to drop mismatched thinking instead of an error. It needs the header
/// [`BINDING_BETA`].
///
/// # Errors
/// If `request` is no request, or `thinking` is no object.
pub fn drop_mismatched(request: &str) -> Result<String, MappingError> {
    let body = Body::of(request)?;
    let thinking = body.get("thinking").unwrap_or("{}");
    let mut thinking: serde_json::Map<String, Value> =
        serde_json::from_str(thinking).map_err(|error| shape("`thinking` (an object)", &error))?;
    let order = serde_json::json!({"prefix_mismatch_behavior": "drop_block"});
    thinking.insert("block_binding".into(), order);
    Ok(body.with(&[("thinking", Some(&Value::Object(thinking).to_string()))]))
}
