//! The formats that this crate reads and writes.

use core::fmt;
use std::sync::LazyLock;

use epitome_core::Profile;
use epitome_message::Str;

use super::spec::FormatSpec;

/// Generates [`Format`] from the table of formats: a name, the profile of the provider, and a module for each.
macro_rules! formats {
    ($($(#[$doc:meta])* $format:ident = $name:literal, $profile:ident, $module:ident;)*) => {
        /// A format of conversations.
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
            $($(#[$doc])* $format,)*
            /// A format that another crate has defined: see [`custom`](crate::custom).
            Custom(&'static FormatSpec),
        }

        /// One row for each format of this crate. If several formats fit a text equally and read it in the same way,
        /// the first one wins.
        pub(crate) static SPECS: &[FormatSpec] = &[$(crate::$module::SPEC),*];

        impl Format {
            /// The formats of this crate, in the order of listings for people.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$format),*];

            /// The name of the format, on the command line and in [`WireText`](epitome_message::WireText). If the
            /// format is a provider's, the profile of that provider has the same name.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$format => $name,)*
                    Self::Custom(spec) => spec.name(),
                }
            }

            /// The profile of the provider that receives a conversation of this format. `agent-framework`, `langchain` and
            /// `semantic-kernel` have the rules of Chat Completions. Other programs that send one conversation to several
            /// providers have only [`Profile::Permissive`].
            ///
            /// `bedrock-converse` has the rules of Anthropic, where neighbours of one role are one turn: its writer joins the
            /// records that a change makes neighbours. [`Profile::BedrockConverse`] is for requests that a program writes
            /// itself.
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
                    $(Self::$format => Profile::$profile,)*
                    Self::Custom(spec) => spec.profile(),
                }
            }

            /// The name as a text that all messages share.
            pub(crate) fn shared_name(self) -> Str {
                match self {
                    $(Self::$format => {
                        static NAME: LazyLock<Str> = LazyLock::new(|| Str::from($name));
                        NAME.clone()
                    })*
                    Self::Custom(spec) => Str::from(spec.name()),
                }
            }
        }
    };
}

// To add a format, add a folder and a row here.
formats! {
    /// Chat Completions of `OpenAI`: requests, responses, message arrays, JSONL of messages.
    OpenaiChat = "openai-chat", OpenaiChat, openai_chat;
    /// Responses of `OpenAI`: items.
    OpenaiResponses = "openai-responses", OpenaiResponses, openai_responses;
    /// Messages of Anthropic.
    Anthropic = "anthropic", Anthropic, anthropic;
    /// Contents of Gemini.
    Gemini = "gemini", Gemini, gemini;
    /// Messages and serialized sessions of Microsoft Agent Framework.
    AgentFramework = "agent-framework", OpenaiChat, agent_framework;
    /// Messages of `LangChain` and `LangGraph`.
    LangChain = "langchain", OpenaiChat, langchain;
    /// A `ChatHistory` of Semantic Kernel.
    SemanticKernel = "semantic-kernel", OpenaiChat, semantic_kernel;
    /// A rollout file of Codex.
    Codex = "codex", OpenaiResponses, codex;
    /// A session file of Claude Code.
    ClaudeCode = "claude-code", Anthropic, claude_code;
    /// A session file of Gemini CLI.
    GeminiCli = "gemini-cli", Gemini, gemini_cli;
    /// The events of `OpenHands`.
    OpenHands = "openhands", Permissive, openhands;
    /// A session file of pi.
    Pi = "pi", Permissive, pi;
    /// A trajectory of SWE-agent.
    SweAgent = "swe-agent", Permissive, swe_agent;
    /// A session file of goose.
    Goose = "goose", Permissive, goose;
    /// Messages of the Vercel AI SDK.
    AiSdk = "ai-sdk", Permissive, ai_sdk;
    /// Messages of the Converse API of Amazon Bedrock.
    BedrockConverse = "bedrock-converse", Anthropic, bedrock_converse;
    /// Messages in OpenTelemetry records.
    OtelGenai = "otel-genai", Permissive, otel_genai;
    /// A conversation of Cline or Roo Code.
    Cline = "cline", Permissive, cline;
    /// A transcript of Cursor's agent.
    Cursor = "cursor", Permissive, cursor;
    /// A session of OpenCode.
    OpenCode = "opencode", Permissive, opencode;
    /// A message history of Pydantic AI.
    PydanticAi = "pydantic-ai", Permissive, pydantic_ai;
    /// A session of Google's ADK.
    Adk = "adk", Permissive, adk;
    /// A session of Continue.
    Continue = "continue", Permissive, continue_dev;
    /// A session of GitHub Copilot CLI.
    CopilotCli = "copilot-cli", Permissive, copilot_cli;
    /// A chat of VS Code with GitHub Copilot.
    CopilotChat = "copilot-chat", Permissive, copilot_chat;
    /// An export of ChatGPT.
    ChatGpt = "chatgpt", Permissive, chatgpt;
    /// An export of claude.ai.
    ClaudeAi = "claude-ai", Permissive, claude_ai;
    /// Dialogues of datasets in the form that began with ShareGPT.
    ShareGpt = "sharegpt", Permissive, sharegpt;
    /// A chat history of aider: markdown.
    Aider = "aider", Permissive, aider;
}

impl Format {
    /// The formats that this build reads and writes.
    pub fn readable() -> impl Iterator<Item = Self> {
        SPECS.iter().map(FormatSpec::format)
    }

    /// The format of this crate that has this name.
    #[must_use]
    pub const fn by_name(name: &str) -> Option<Self> {
        let mut rest = Self::ALL.as_slice();
        while let [format, others @ ..] = rest {
            if is_same(format.as_str().as_bytes(), name.as_bytes()) {
                return Some(*format);
            }
            rest = others;
        }
        None
    }
}

/// Whether two names are equal; usable in constants.
pub(crate) const fn is_same(mut one: &[u8], mut other: &[u8]) -> bool {
    while let ([first, one_rest @ ..], [second, other_rest @ ..]) = (one, other) {
        if *first != *second {
            return false;
        }
        (one, other) = (one_rest, other_rest);
    }
    one.is_empty() && other.is_empty()
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
