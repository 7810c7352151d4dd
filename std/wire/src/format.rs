//! The formats that are read and written.

use core::fmt;
use std::sync::LazyLock;

use epitome_core::Profile;
use epitome_message::Str;

use super::spec::SPECS;

/// How a conversation is written down.
///
/// ```
/// use epitome_wire::Format;
///
/// assert_eq!(Format::by_name("openai-chat"), Some(Format::OpenaiChat));
/// assert_eq!(Format::Anthropic.to_string(), "anthropic");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Format {
    /// Chat Completions of `OpenAI`: requests, responses, message arrays, JSONL of messages.
    OpenaiChat,
    /// Responses of `OpenAI`: items.
    OpenaiResponses,
    /// Messages of Anthropic.
    Anthropic,
    /// Contents of Gemini.
    Gemini,
    /// Messages and serialized sessions of Microsoft Agent Framework.
    AgentFramework,
    /// Messages as `LangChain` and `LangGraph` write them.
    LangChain,
    /// A `ChatHistory` of Semantic Kernel.
    SemanticKernel,
    /// A rollout file of Codex.
    Codex,
    /// A session file of Claude Code.
    ClaudeCode,
    /// A session file of Gemini CLI.
    GeminiCli,
    /// The events of `OpenHands`.
    OpenHands,
    /// A session file of pi.
    Pi,
    /// A trajectory of SWE-agent.
    SweAgent,
    /// A session file of goose.
    Goose,
    /// Messages of the Vercel AI SDK.
    AiSdk,
    /// Messages of the Converse API of Amazon Bedrock.
    BedrockConverse,
    /// Messages as OpenTelemetry records them.
    OtelGenai,
    /// A conversation of Cline or Roo Code.
    Cline,
    /// A transcript of Cursor's agent.
    Cursor,
    /// A session of OpenCode.
    OpenCode,
    /// A message history of Pydantic AI.
    PydanticAi,
    /// A session of Google's ADK.
    Adk,
    /// A session of Continue.
    Continue,
    /// A session of GitHub Copilot CLI.
    CopilotCli,
    /// A chat of VS Code with GitHub Copilot.
    CopilotChat,
}

impl Format {
    /// All formats that have a name, in the order in which they are listed to people.
    pub const ALL: [Self; 25] = [
        Self::OpenaiChat,
        Self::OpenaiResponses,
        Self::Anthropic,
        Self::Gemini,
        Self::AgentFramework,
        Self::LangChain,
        Self::SemanticKernel,
        Self::Codex,
        Self::ClaudeCode,
        Self::GeminiCli,
        Self::OpenHands,
        Self::Pi,
        Self::SweAgent,
        Self::Goose,
        Self::AiSdk,
        Self::BedrockConverse,
        Self::OtelGenai,
        Self::Cline,
        Self::Cursor,
        Self::OpenCode,
        Self::PydanticAi,
        Self::Adk,
        Self::Continue,
        Self::CopilotCli,
        Self::CopilotChat,
    ];

    /// The formats that this build reads and writes.
    pub fn readable() -> impl Iterator<Item = Self> {
        SPECS.iter().map(|spec| spec.format)
    }

    /// Its name, on the command line and in [`WireText`](epitome_message::WireText). Where the format is a provider's, the
    /// profile of that provider has the same name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenaiChat => "openai-chat",
            Self::OpenaiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::AgentFramework => "agent-framework",
            Self::LangChain => "langchain",
            Self::SemanticKernel => "semantic-kernel",
            Self::Codex => "codex",
            Self::ClaudeCode => "claude-code",
            Self::GeminiCli => "gemini-cli",
            Self::OpenHands => "openhands",
            Self::Pi => "pi",
            Self::SweAgent => "swe-agent",
            Self::Goose => "goose",
            Self::AiSdk => "ai-sdk",
            Self::BedrockConverse => "bedrock-converse",
            Self::OtelGenai => "otel-genai",
            Self::Cline => "cline",
            Self::Cursor => "cursor",
            Self::OpenCode => "opencode",
            Self::PydanticAi => "pydantic-ai",
            Self::Adk => "adk",
            Self::Continue => "continue",
            Self::CopilotCli => "copilot-cli",
            Self::CopilotChat => "copilot-chat",
        }
    }

    /// The profile of the provider that a conversation of this format is sent to. A framework sends Chat Completions; programs
    /// that send one conversation to several providers promise no more than [`Profile::Permissive`].
    ///
    /// ```
    /// use epitome_core::Profile;
    /// use epitome_wire::Format;
    ///
    /// assert_eq!(Format::ClaudeCode.profile(), Profile::Anthropic);
    /// ```
    #[must_use]
    pub const fn profile(self) -> Profile {
        match self {
            Self::OpenaiChat | Self::AgentFramework | Self::LangChain | Self::SemanticKernel => {
                Profile::OpenaiChat
            }
            Self::OpenaiResponses | Self::Codex => Profile::OpenaiResponses,
            Self::Anthropic | Self::ClaudeCode | Self::BedrockConverse => Profile::Anthropic,
            Self::Gemini | Self::GeminiCli => Profile::Gemini,
            Self::OpenHands | Self::Pi | Self::SweAgent | Self::Goose | Self::OpenCode | Self::Continue => {
                Profile::Permissive
            }
            Self::AiSdk | Self::OtelGenai | Self::Cline | Self::Cursor => Profile::Permissive,
            Self::PydanticAi | Self::Adk | Self::CopilotCli | Self::CopilotChat => Profile::Permissive,
        }
    }

    /// Its name as the text that all messages share.
    pub(crate) fn shared_name(self) -> Str {
        static NAMES: LazyLock<[Str; Format::ALL.len()]> =
            LazyLock::new(|| Format::ALL.map(|format| Str::from(format.as_str())));
        NAMES.get(self as usize).cloned().unwrap_or_default()
    }

    /// The format of this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.as_str() == name)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found_again() {
        for format in Format::ALL {
            assert_eq!(Format::by_name(format.as_str()), Some(format));
            assert_eq!(format.shared_name(), format.as_str());
        }
        assert_eq!(Format::by_name("auto"), None);
    }

    #[test]
    fn a_providers_format_is_called_as_its_profile() {
        for format in [Format::OpenaiChat, Format::OpenaiResponses, Format::Anthropic, Format::Gemini] {
            assert_eq!(Profile::by_name(format.as_str()), Some(format.profile()), "{format}");
        }
    }
}
