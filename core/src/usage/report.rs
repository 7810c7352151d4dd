//! The report of a provider on one response, with one meaning for all vendors.

/// The token report of a provider for one response. A field that the provider did not send is `None`.
///
/// ```
/// use epitome_core::{AnthropicTokens, OpenAiTokens, Usage};
///
/// let openai =
///     OpenAiTokens { input: Some(9_000), cached: Some(8_000), output: Some(50), ..OpenAiTokens::NONE };
/// let anthropic =
///     AnthropicTokens { input: Some(1_000), cache_read: Some(8_000), output: Some(50), ..AnthropicTokens::NONE };
/// // The same request: one vendor counts what came from its cache as input, the other beside it.
/// assert_eq!(Usage::openai(openai).input_total, Usage::anthropic(anthropic).input_total);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default))]
#[non_exhaustive]
pub struct Usage {
    /// The whole input, including the tokens from a cache.
    pub input_total: Option<u64>,
    /// The whole output, including reasoning.
    pub output_total: Option<u64>,
    /// Input and output, as reported; for a vendor that reports no such sum, the sum of both where both are known.
    pub total: Option<u64>,
    /// The tokens of the input that were read from the provider's cache.
    pub cache_read: Option<u64>,
    /// The tokens of the input that were written to the provider's cache.
    pub cache_creation: Option<u64>,
    /// The tokens of the output that were reasoning.
    pub reasoning: Option<u64>,
    /// The part of the input that is the request itself.
    pub(super) request: Request,
}

/// The part of the input that is the sent request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
pub(super) enum Request {
    /// The whole input.
    #[default]
    All,
    /// This number of tokens. The rest was added by steps that the provider made itself.
    Part(u64),
    /// Unknown: the sum contains steps that the provider made itself.
    Unknown,
    /// The provider compacted the request, and the model then read this number of tokens.
    Compacted(u64),
}

impl Usage {
    /// A report without any figures.
    pub const NONE: Self = Self {
        input_total: None,
        output_total: None,
        total: None,
        cache_read: None,
        cache_creation: None,
        reasoning: None,
        request: Request::All,
    };

    /// A report of these totals, including the tokens from a cache and reasoning. `total` is their sum.
    #[must_use]
    pub const fn new(input_total: u64, output_total: u64) -> Self {
        Self {
            input_total: Some(input_total),
            output_total: Some(output_total),
            total: Some(input_total.saturating_add(output_total)),
            ..Self::NONE
        }
    }

    /// A report of `OpenAI`, or of a provider with its format: the totals are as reported.
    #[must_use]
    pub const fn openai(tokens: OpenAiTokens) -> Self {
        Self {
            input_total: tokens.input,
            output_total: tokens.output,
            total: tokens.total,
            cache_read: tokens.cached,
            reasoning: tokens.reasoning,
            ..Self::NONE
        }
    }

    /// A report of Anthropic or Bedrock. Their input excludes the tokens that were read from and written to the cache,
    /// so all three are added, up to `u64::MAX`. Without an input there is no total.
    #[must_use]
    pub const fn anthropic(tokens: AnthropicTokens) -> Self {
        let input_total = match tokens.input {
            Some(input) => Some(
                input
                    .saturating_add(or_zero(tokens.cache_read))
                    .saturating_add(or_zero(tokens.cache_creation)),
            ),
            None => None,
        };
        let total = match (input_total, tokens.output) {
            (Some(input), Some(output)) => Some(input.saturating_add(output)),
            _ => None,
        };
        Self {
            input_total,
            output_total: tokens.output,
            total,
            cache_read: tokens.cache_read,
            cache_creation: tokens.cache_creation,
            ..Self::NONE
        }
    }

    /// A report of Gemini: tokens of server-side tool use join the input, thoughts join the output, up to `u64::MAX`.
    ///
    /// The sent request is the prompt: the tokens that its server-side tools added are input, but not part of the
    /// request.
    #[must_use]
    pub const fn gemini(tokens: GeminiTokens) -> Self {
        let (input_total, request) = match (tokens.prompt, tokens.tool_use_prompt) {
            (Some(prompt), Some(added)) if added > 0 => {
                (Some(prompt.saturating_add(added)), Request::Part(prompt))
            }
            (prompt, _) => (prompt, Request::All),
        };
        let output_total = match (tokens.candidates, tokens.thoughts) {
            (None, None) => None,
            (candidates, thoughts) => Some(or_zero(candidates).saturating_add(or_zero(thoughts))),
        };
        Self {
            input_total,
            output_total,
            total: tokens.total,
            cache_read: tokens.cached,
            reasoning: tokens.thoughts,
            request,
            ..Self::NONE
        }
    }

    /// Declares that the provider made several steps itself for the response (server-side tools) and added their inputs
    /// up.
    ///
    /// `first` is the input of the first step, which is the sent request; `None` if the provider does not report it.
    /// Then the report counts as spend, but gives no size.
    #[must_use]
    pub const fn of_server_steps(mut self, first: Option<u64>) -> Self {
        self.request = match first {
            Some(input) => Request::Part(input),
            None => Request::Unknown,
        };
        self
    }

    /// Declares that the provider compacted the request itself.
    ///
    /// `read` is the input of the first step after that; `None` if the provider does not report it. It is the size of
    /// the request from now on, if the provider skips the content that it has compacted. The report does not change the
    /// correction of the counter, because the rest was not counted here.
    ///
    /// Source: `BetaUsage.iterations` of anthropic-sdk-python, after which the size of the context is that of the message's
    /// step, and never that of the compaction's.
    ///
    /// ```
    /// use epitome_core::{Budget, ClassEstimator, Head, ModelKey, Revision, Stamp, Usage, UsageLedger};
    ///
    /// let stamp = Stamp::new(Revision(0), Head::default());
    /// let mut ledger = UsageLedger::new(ModelKey::new("claude", &ClassEstimator::new()), Budget::default());
    /// let request = ledger.begin_request(180_000, stamp);
    /// ledger.record(request, &Usage::new(23_000, 1_000).after_compaction(Some(23_000)));
    /// // The whole history goes on being sent, and 1,400 tokens more.
    /// assert_eq!(ledger.size(181_400, stamp).tokens, 24_400);
    /// ```
    #[must_use]
    pub const fn after_compaction(mut self, read: Option<u64>) -> Self {
        self.request = match read {
            Some(input) => Request::Compacted(input),
            None => Request::Unknown,
        };
        self
    }

    /// Whether the report contains the input.
    pub(super) const fn has_input(&self) -> bool {
        self.input_total.is_some()
    }

    /// The size of the sent request, if the report is plausible: it is not zero, the input is not below its own cached
    /// part, and the input contains no unlisted step that the provider made itself.
    pub const fn request_size(&self) -> Option<u64> {
        match self.request {
            Request::All => self.believed(self.input_total),
            Request::Part(part) => self.believed(Some(part)),
            Request::Unknown | Request::Compacted(_) => None,
        }
    }

    /// The size from which later sizes are measured, if the report is plausible: that of the sent request, or of its
    /// rest if the provider has compacted it.
    pub(super) const fn context_size(&self) -> Option<u64> {
        match self.request {
            Request::Compacted(read) => self.believed(Some(read)),
            _ => self.request_size(),
        }
    }

    const fn believed(&self, part: Option<u64>) -> Option<u64> {
        let (Some(input), Some(size)) = (self.input_total, part) else { return None };
        let cached = or_zero(self.cache_read).saturating_add(or_zero(self.cache_creation));
        if size == 0 || size > input || input < cached { None } else { Some(size) }
    }
}

/// `prompt_tokens`, `completion_tokens` and so on of Chat Completions; `input_tokens`, `output_tokens` of Responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::exhaustive_structs, reason = "a literal that ends in ..NONE outlives a new field")]
pub struct OpenAiTokens {
    /// `prompt_tokens` or `input_tokens`, including the tokens from the cache.
    pub input: Option<u64>,
    /// `completion_tokens` or `output_tokens`, including reasoning.
    pub output: Option<u64>,
    /// `total_tokens`.
    pub total: Option<u64>,
    /// `cached_tokens` of the input's details.
    pub cached: Option<u64>,
    /// `reasoning_tokens` of the output's details.
    pub reasoning: Option<u64>,
}

impl OpenAiTokens {
    /// No field was sent.
    pub const NONE: Self = Self { input: None, output: None, total: None, cached: None, reasoning: None };
}

/// The `usage` of Anthropic's Messages, and of Bedrock's Converse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::exhaustive_structs, reason = "a literal that ends in ..NONE outlives a new field")]
pub struct AnthropicTokens {
    /// `input_tokens` (`inputTokens`): only the tokens that neither came from the cache nor were written to it.
    pub input: Option<u64>,
    /// `cache_read_input_tokens` (`cacheReadInputTokens`).
    pub cache_read: Option<u64>,
    /// `cache_creation_input_tokens` (`cacheWriteInputTokens`).
    pub cache_creation: Option<u64>,
    /// `output_tokens` (`outputTokens`).
    pub output: Option<u64>,
}

impl AnthropicTokens {
    /// No field was sent.
    pub const NONE: Self = Self { input: None, cache_read: None, cache_creation: None, output: None };

    /// Updates the fields of a stream, which reports its input at the start and its output at the end: the fields of
    /// `later` that were sent replace these.
    #[must_use]
    pub const fn updated_by(self, later: Self) -> Self {
        Self {
            input: later_of(later.input, self.input),
            cache_read: later_of(later.cache_read, self.cache_read),
            cache_creation: later_of(later.cache_creation, self.cache_creation),
            output: later_of(later.output, self.output),
        }
    }
}

/// The `usageMetadata` of Gemini.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::exhaustive_structs, reason = "a literal that ends in ..NONE outlives a new field")]
pub struct GeminiTokens {
    /// `promptTokenCount`, including the tokens from the cache.
    pub prompt: Option<u64>,
    /// `toolUsePromptTokenCount`: the tokens that server-side tools added to the input.
    pub tool_use_prompt: Option<u64>,
    /// `candidatesTokenCount`: the answer without thoughts.
    pub candidates: Option<u64>,
    /// `thoughtsTokenCount`.
    pub thoughts: Option<u64>,
    /// `totalTokenCount`.
    pub total: Option<u64>,
    /// `cachedContentTokenCount`.
    pub cached: Option<u64>,
}

impl GeminiTokens {
    /// No field was sent.
    pub const NONE: Self = Self {
        prompt: None,
        tool_use_prompt: None,
        candidates: None,
        thoughts: None,
        total: None,
        cached: None,
    };
}

/// A missing field counts as zero.
pub(super) const fn or_zero(field: Option<u64>) -> u64 {
    match field {
        Some(tokens) => tokens,
        None => 0,
    }
}

const fn later_of(later: Option<u64>, earlier: Option<u64>) -> Option<u64> {
    if later.is_some() { later } else { earlier }
}
