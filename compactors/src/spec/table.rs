//! The table of all strategies and their parameters.

/// A strategy.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct StageRow {
    pub(super) name: &'static str,
    pub(super) parameters: &'static [Parameter],
}

/// A parameter. Its default is that of the strategy.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    /// Shorter second name.
    pub(super) short: Option<&'static str>,
    pub(super) kind: Kind,
    /// Whether it must have a value.
    pub(super) must: bool,
    /// Whether at most one of the parameters with this mark may be set.
    pub(super) alternative: bool,
}

/// Kind of a parameter's value.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A number.
    Count,
    /// A number of tokens.
    Tokens,
    /// `true` or `false`.
    Switch,
    /// One of these words. Each has several spellings, the first one for output.
    Word(&'static [&'static [&'static str]]),
    /// Names of tools.
    Tools,
}

impl Parameter {
    const fn new(name: &'static str, kind: Kind) -> Self {
        Self { name, short: None, kind, must: false, alternative: false }
    }

    const fn short(mut self, short: &'static str) -> Self {
        self.short = Some(short);
        self
    }

    const fn must(mut self) -> Self {
        self.must = true;
        self
    }

    const fn alternative(mut self) -> Self {
        self.alternative = true;
        self
    }
}

pub(super) const TRUNCATE: &str = "truncate";
pub(super) const WINDOW: &str = "window";
pub(super) const TOOL_RESULTS: &str = "tool-results";
pub(super) const TOOL_DROP: &str = "tool-drop";
pub(super) const TOOL_DIGEST: &str = "tool-digest";
pub(super) const MEDIA: &str = "media";
pub(super) const REASONING: &str = "reasoning";
pub(super) const CLAMP: &str = "clamp";
pub(super) const SUPERSEDE: &str = "supersede";
pub(super) const EPHEMERAL: &str = "ephemeral";
pub(super) const SUMMARIZE: &str = "summarize";
pub(super) const SALIENCE: &str = "salience";
pub(super) const CHAT: &str = "chat";
pub(super) const LEDGER: &str = "ledger";
pub(super) const AGENT: &str = "agent";
pub(super) const CONTEXT_WINDOW: &str = "context-window";

const PRESERVE_RECENT: Parameter = Parameter::new("preserve-recent", Kind::Count).short("recent");
const PRESERVE_FIRST_USER: Parameter =
    Parameter::new("preserve-first-user", Kind::Switch).short("first-user");
const SHARE: Parameter = Parameter::new("share", Kind::Count);
const KEEP: Parameter = Parameter::new("keep", Kind::Count);
const KEEP_USER_MESSAGES: Parameter = Parameter::new("keep-user-messages", Kind::Count).short("users");
const PLACEHOLDER: Parameter = Parameter::new("placeholder", Kind::Tokens);

/// Parameters of a strategy that chooses groups by worth.
const WORTH: &[Parameter] =
    &[PRESERVE_RECENT, Parameter::new("near-request", Kind::Switch), PRESERVE_FIRST_USER];

/// All strategies.
pub(super) const STAGES: &[StageRow] = &[
    StageRow {
        name: TRUNCATE,
        parameters: &[
            PRESERVE_RECENT,
            Parameter::new("preserve-system", Kind::Switch).short("system"),
            PRESERVE_FIRST_USER,
            // The proposal for automatic compaction calls the first one conservative.
            Parameter::new(
                "strength",
                Kind::Word(&[&["light", "conservative"], &["moderate"], &["aggressive"]]),
            ),
            Parameter::new("walk", Kind::Word(&[&["oldest-first"], &["newest-first"]])),
        ],
    },
    StageRow {
        name: WINDOW,
        parameters: &[
            Parameter::new("keep-turns", Kind::Count).short("turns").alternative(),
            Parameter::new("keep-groups", Kind::Count).short("groups").alternative(),
            Parameter::new("keep-tokens", Kind::Tokens).short("tokens").alternative(),
            PRESERVE_FIRST_USER,
        ],
    },
    StageRow {
        name: TOOL_RESULTS,
        parameters: &[
            KEEP,
            Parameter::new("clear-at-least", Kind::Tokens).short("at-least"),
            Parameter::new("exclude-tools", Kind::Tools).short("spare"),
            Parameter::new("clear-inputs", Kind::Switch).short("inputs"),
            PLACEHOLDER,
        ],
    },
    StageRow { name: TOOL_DROP, parameters: &[KEEP] },
    StageRow {
        name: TOOL_DIGEST,
        parameters: &[KEEP, Parameter::new("chars-max", Kind::Count).short("chars")],
    },
    StageRow { name: MEDIA, parameters: &[Parameter::new("keep-turns", Kind::Count).short("keep")] },
    StageRow {
        name: REASONING,
        parameters: &[
            Parameter::new("profile", Kind::Word(PROFILES)).must(),
            Parameter::new("keep-turns", Kind::Count).short("keep"),
        ],
    },
    StageRow {
        name: CLAMP,
        parameters: &[Parameter::new("max-part-tokens", Kind::Count).short("max").must()],
    },
    StageRow {
        name: SUPERSEDE,
        parameters: &[Parameter::new("only-tools", Kind::Tools).short("only"), PLACEHOLDER],
    },
    StageRow { name: EPHEMERAL, parameters: &[] },
    StageRow {
        name: SUMMARIZE,
        parameters: &[
            PRESERVE_RECENT,
            Parameter::new("summary-tokens-max", Kind::Count).short("tokens"),
            KEEP_USER_MESSAGES,
            PRESERVE_FIRST_USER,
        ],
    },
    StageRow { name: SALIENCE, parameters: WORTH },
    StageRow { name: CHAT, parameters: WORTH },
    StageRow { name: LEDGER, parameters: &[SHARE] },
    StageRow { name: AGENT, parameters: &[SHARE, KEEP_USER_MESSAGES] },
    StageRow {
        name: CONTEXT_WINDOW,
        parameters: &[
            Parameter::new("window", Kind::Tokens).must(),
            Parameter::new("max-output", Kind::Tokens).short("output").must(),
            Parameter::new("summarize", Kind::Switch),
        ],
    },
];

/// The names of [`Profile`](epitome_core::Profile)s. A test compares the two lists.
const PROFILES: &[&[&str]] = &[
    &["openai-chat"],
    &["openai-responses"],
    &["anthropic"],
    &["gemini"],
    &["mistral"],
    &["qwen"],
    &["deepseek"],
    &["bedrock-converse"],
    &["permissive"],
];
