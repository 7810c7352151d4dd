//! The table of rules: the requirements of each profile, as plain data.

/// Rules of one profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rules {
    pub(crate) first: First,
    pub(crate) instructions: Instructions,
    pub(crate) results: Results,
    pub(crate) neighbours: Neighbours,
    pub(crate) reasoning: Reasoning,
}

/// Speaker of the first message, instructions aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum First {
    Anyone,
    /// The user. There must be one.
    User,
    /// The user, or a message with the content of a provider's compaction.
    UserOrCompaction,
}

/// Places of system and developer messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Instructions {
    Anywhere,
    /// Before all others.
    Leading,
    /// Before all others, and at most one.
    OneLeading,
}

/// Place of the result of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Results {
    /// Anywhere after the call.
    Later,
    /// Directly after the call, among the other results of its turn.
    Next,
}

/// Roles that may follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Neighbours {
    /// Any role may follow any role.
    Free,
    /// Any role may follow any role, but neighbours of one role are one turn.
    Joined,
    /// User and model alternate. Results are a turn of the user, which one message of the user may continue.
    Alternate,
    /// User and model alternate, where messages with calls and results do not count. No user message stands directly
    /// after a result.
    AlternateBesideTools,
}

/// Content that reasoning must come with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reasoning {
    Free,
    /// A reasoning item with an id comes with the content that follows it in its response.
    WithNext,
    /// In the open turn, all messages with calls have reasoning, or none has.
    WithCalls,
    /// Signed reasoning comes with unchanged content before it, so that none may stand behind an edit.
    Bound,
}

impl Rules {
    pub(crate) const PERMISSIVE: Self = Self {
        first: First::Anyone,
        instructions: Instructions::Anywhere,
        results: Results::Later,
        neighbours: Neighbours::Free,
        reasoning: Reasoning::Free,
    };

    pub(crate) const OPENAI_CHAT: Self = Self { results: Results::Next, ..Self::PERMISSIVE };

    pub(crate) const OPENAI_RESPONSES: Self = Self { reasoning: Reasoning::WithNext, ..Self::PERMISSIVE };

    pub(crate) const DEEPSEEK: Self = Self { reasoning: Reasoning::WithCalls, ..Self::OPENAI_CHAT };

    pub(crate) const ANTHROPIC: Self = Self {
        first: First::UserOrCompaction,
        instructions: Instructions::Leading,
        results: Results::Next,
        neighbours: Neighbours::Joined,
        reasoning: Reasoning::Bound,
    };

    pub(crate) const GEMINI: Self =
        Self { first: First::User, reasoning: Reasoning::Free, ..Self::ANTHROPIC };

    pub(crate) const BEDROCK_CONVERSE: Self = Self { neighbours: Neighbours::Alternate, ..Self::GEMINI };

    pub(crate) const CHAT_TEMPLATE: Self = Self {
        first: First::User,
        instructions: Instructions::OneLeading,
        results: Results::Next,
        neighbours: Neighbours::AlternateBesideTools,
        reasoning: Reasoning::Free,
    };
}
