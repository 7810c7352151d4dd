//! The rules of the provider that receives a request.

mod rules;

pub(crate) use rules::{First, Instructions, Neighbours, Reasoning, Results, Rules};

/// The model provider whose rules a request must obey.
///
/// Each profile is a table of rules, which [`Validator`](crate::Validator) checks and `repair` enforces. In all
/// profiles each result has its call before it, and each call has one result.
///
/// Each profile names its sources. If a provider documents a rule, or refuses a request that breaks the rule, the
/// profile has this rule. Where models are served through chat templates with different authors, the profile has the
/// rules of most templates, so that all of them accept a request that passes. A model of a family may accept more than
/// its profile.
///
/// A message that carries a tool result counts as that result, in any role. A message with a call that the caller runs
/// counts as a call, even if it has other content. Calls that the provider runs itself are not checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Profile {
    /// Chat Completions of `OpenAI` and of providers with its format: the results of all calls of a message follow it
    /// directly. Roles come in any order, and instructions stand anywhere.
    ///
    /// Source: the provider's documentation and its refusals.
    #[default]
    OpenaiChat,
    /// Responses of `OpenAI`: the results stand anywhere after their calls, paired by id. A reasoning item with an id
    /// is directly followed by the content that it led to: another part of its message, or a message of the model in
    /// the same response, if both name a response. Roles come in any order.
    ///
    /// Source: the provider's documentation and its refusals. The item that requests a compaction, which must come
    /// last, is no message and not checked.
    OpenaiResponses,
    /// Messages of Anthropic: the first message is the user's, or one with the block of a provider's compaction.
    /// Instructions are sent apart, and so stand before everything else. The results stand directly after the turn of
    /// the calls, before any other content of the user. Neighbours of one role are one turn. After an edit no signed
    /// reasoning remains behind it, because a signature covers everything before it; see
    /// [`Validator::with_edit`](crate::Validator::with_edit).
    ///
    /// Source: the provider's documentation and its refusals.
    Anthropic,
    /// Gemini: the first message is the user's, and instructions are sent apart. A turn with function calls is directly
    /// followed by a turn with as many responses. Neighbours of one role are one turn.
    ///
    /// Source: the provider's refusals; its clients join neighbours.
    Gemini,
    /// Mistral: the first message is the user's, and at most one with instructions stands before it. User and model
    /// alternate, where messages with calls and results do not count; the results stand directly after their calls, and the
    /// user never directly after a result.
    ///
    /// Source: the refusals of the service ("user after tool", the number of results) and the chat templates that are
    /// published with the models (alternation, one message of instructions). The service itself joins neighbours of one
    /// role where the templates refuse them.
    Mistral,
    /// Qwen, and chat templates in general: the rules of [`Profile::Mistral`].
    ///
    /// Source: the common rules of many published chat templates. Qwen's own templates refuse a second or late message
    /// with instructions and a request without a user, but not neighbours of one role.
    Qwen,
    /// `DeepSeek`: the rules of [`Profile::OpenaiChat`], and one more. In the open turn, after the user's last message,
    /// either all messages with calls carry their reasoning or none does. A breach is reported once, at the first
    /// message without reasoning.
    ///
    /// Source: the documentation of the thinking mode, whose demand has varied between models. A request does not show
    /// whether the mode is on: a turn without any reasoning passes.
    Deepseek,
    /// Converse of Bedrock: the first message is the user's, instructions are sent apart, and user and model alternate.
    /// Results are a turn of the user, directly after the calls; one message of the user may follow in the same turn.
    ///
    /// Source: the provider's documentation and its refusals.
    BedrockConverse,
    /// Only the rules that hold everywhere: each result has its call before it, and each call has one result.
    Permissive,
}

impl Profile {
    /// All profiles.
    pub const ALL: [Self; 9] = [
        Self::OpenaiChat,
        Self::OpenaiResponses,
        Self::Anthropic,
        Self::Gemini,
        Self::Mistral,
        Self::Qwen,
        Self::Deepseek,
        Self::BedrockConverse,
        Self::Permissive,
    ];

    /// The name of the profile.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenaiChat => "openai-chat",
            Self::OpenaiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Mistral => "mistral",
            Self::Qwen => "qwen",
            Self::Deepseek => "deepseek",
            Self::BedrockConverse => "bedrock-converse",
            Self::Permissive => "permissive",
        }
    }

    /// The profile with this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.as_str() == name)
    }

    /// Whether a result contains the name of its tool: Gemini pairs calls and responses by name.
    #[must_use]
    pub const fn names_results(self) -> bool {
        matches!(self, Self::Gemini)
    }

    /// The rules of the profile.
    pub(crate) const fn rules(self) -> &'static Rules {
        match self {
            Self::OpenaiChat => &Rules::OPENAI_CHAT,
            Self::OpenaiResponses => &Rules::OPENAI_RESPONSES,
            Self::Anthropic => &Rules::ANTHROPIC,
            Self::Gemini => &Rules::GEMINI,
            Self::Mistral | Self::Qwen => &Rules::CHAT_TEMPLATE,
            Self::Deepseek => &Rules::DEEPSEEK,
            Self::BedrockConverse => &Rules::BEDROCK_CONVERSE,
            Self::Permissive => &Rules::PERMISSIVE,
        }
    }
}
