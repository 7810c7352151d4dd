//! Tokens that providers add around the parts of a message.

use crate::{Basis, Profile};

/// The tokens that a provider adds around the content of messages.
///
/// Plain data: a caller with better figures changes a field.
///
/// ```
/// use epitome_core::{Basis, Framing, Profile};
///
/// let chat = Framing::of(Profile::OpenaiChat);
/// assert_eq!((chat.message, chat.name, chat.request, chat.basis), (3, 1, 3, Basis::Counted));
/// // Anthropic publishes no figures: those of Chat Completions stand in, and say so.
/// assert_eq!(Framing::of(Profile::Anthropic).basis, Basis::Estimated);
/// ```
///
/// # Sources
/// - [`Framing::OPENAI`]: `num_tokens_from_messages` and `num_tokens_for_tools` in the `OpenAI` Cookbook, "How to count
///   tokens with tiktoken" (<https://cookbook.openai.com/examples/how_to_count_tokens_with_tiktoken>). It has no figure
///   for calls; here a call is framed like a message.
/// - [`Framing::CHATML`]: the chat template published with Qwen's models: `<|im_start|>role\n` before a message,
///   `<|im_end|>\n` behind it, `<|im_start|>assistant\n` before the reply.
/// - Anthropic, Google, Mistral, `DeepSeek` and Bedrock publish no figures, and neither does `OpenAI` for Responses:
///   they have [`Framing::OPENAI`], marked as estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_structs, reason = "a literal that ends in ..OPENAI outlives a new field")]
pub struct Framing {
    /// Around each message.
    pub message: u32,
    /// For the name of a speaker, in addition to the text of the name.
    pub name: u32,
    /// Around each call.
    pub call: u32,
    /// Once for each request: the beginning of the reply.
    pub request: u32,
    /// Around tools.
    pub tools: ToolFraming,
    /// [`Basis::Counted`] if the provider published the figures, else [`Basis::Estimated`].
    pub basis: Basis,
}

/// The tokens that a provider adds around the tools that it is given.
///
/// With the names of the Cookbook: `func_init`, `prop_init`, `prop_key`, `enum_init`, `enum_item`, `func_end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_structs, reason = "a literal that ends in ..O200K outlives a new field")]
pub struct ToolFraming {
    /// Before each function.
    pub function: i32,
    /// For the properties of a function that has some.
    pub properties: i32,
    /// For each property.
    pub property: i32,
    /// For a property with a list of values. It may be negative.
    pub values: i32,
    /// For each of these values.
    pub value: i32,
    /// Once, behind all functions.
    pub end: i32,
}

impl ToolFraming {
    /// GPT-4o and later models.
    pub const O200K: Self = Self { function: 7, properties: 3, property: 3, values: -3, value: 3, end: 12 };
    /// GPT-4 and GPT-3.5.
    pub const CL100K: Self = Self { function: 10, ..Self::O200K };
}

impl Framing {
    /// Chat Completions, as published.
    pub const OPENAI: Self =
        Self { message: 3, name: 1, call: 3, request: 3, tools: ToolFraming::O200K, basis: Basis::Counted };

    /// The template called `ChatML`, as published with Qwen's models. Its tokens for tools are not counted: estimated.
    pub const CHATML: Self = Self { message: 5, basis: Basis::Estimated, ..Self::OPENAI };

    /// The framing of `profile`.
    #[must_use]
    pub const fn of(profile: Profile) -> Self {
        match profile {
            Profile::OpenaiChat => Self::OPENAI,
            Profile::Qwen => Self::CHATML,
            _ => Self { basis: Basis::Estimated, ..Self::OPENAI },
        }
    }
}

impl Default for Framing {
    fn default() -> Self {
        Self::OPENAI
    }
}
