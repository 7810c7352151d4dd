//! Condition that made a pass due, for events and records.

use core::fmt;

/// The condition that made a pass due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fired {
    kind: TriggerKind,
    amounts: Option<(u64, u64)>,
}

impl Fired {
    /// The condition that `measured` is more than `limit`, if it holds.
    pub(super) fn over(kind: TriggerKind, measured: u64, limit: u64) -> Option<Self> {
        (measured > limit).then_some(Self { kind, amounts: Some((measured, limit)) })
    }

    pub(super) fn when(kind: TriggerKind, holds: bool) -> Option<Self> {
        holds.then_some(Self { kind, amounts: None })
    }

    /// The kind of the condition.
    #[must_use]
    pub const fn kind(&self) -> TriggerKind {
        self.kind
    }

    /// The measured amount, and the limit that it is above, in the condition's unit (tokens, messages, turns, groups or
    /// steps); `None` for a condition without a limit.
    #[must_use]
    pub const fn amounts(&self) -> Option<(u64, u64)> {
        self.amounts
    }
}

impl fmt::Display for Fired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.as_str())?;
        match self.amounts {
            Some((measured, limit)) => write!(f, ": {measured} > {limit}"),
            None => Ok(()),
        }
    }
}

/// The kinds of conditions that can make a pass due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum TriggerKind {
    /// [`Trigger::tokens`](super::Trigger::tokens).
    Tokens,
    /// [`Trigger::budget`](super::Trigger::budget).
    Budget,
    /// [`Trigger::reported`](super::Trigger::reported).
    Reported,
    /// [`Trigger::window_per_mille`](super::Trigger::window_per_mille), with the share in tokens as its limit.
    Window,
    /// [`Trigger::messages`](super::Trigger::messages).
    Messages,
    /// [`Trigger::turns`](super::Trigger::turns).
    Turns,
    /// [`Trigger::groups`](super::Trigger::groups).
    Groups,
    /// [`Trigger::has_tool_calls`](super::Trigger::has_tool_calls).
    ToolCalls,
    /// [`Trigger::tool_result_age`](super::Trigger::tool_result_age).
    ToolResultAge,
    /// [`Trigger::always`](super::Trigger::always).
    Always,
    /// [`Trigger::manual`](super::Trigger::manual).
    Manual,
    /// [`Trigger::overflow`](super::Trigger::overflow).
    Overflow,
    /// [`Trigger::all`](super::Trigger::all) of an empty list.
    All,
}

impl TriggerKind {
    /// The name of the kind, for example `tool_result_age`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tokens => "tokens",
            Self::Budget => "budget",
            Self::Reported => "reported",
            Self::Window => "window",
            Self::Messages => "messages",
            Self::Turns => "turns",
            Self::Groups => "groups",
            Self::ToolCalls => "tool_calls",
            Self::ToolResultAge => "tool_result_age",
            Self::Always => "always",
            Self::Manual => "manual",
            Self::Overflow => "overflow",
            Self::All => "all",
        }
    }
}
