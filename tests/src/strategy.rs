//! The strategies of properties, of the corpus and of the grid, with typed parameters for the naive twin.

use core::fmt;
use core::str::FromStr;

use epitome_compactors::{
    Pipeline, Salience, SpecTexts, StrategySpec, Strength, Supersede, Truncation, Window,
};
use epitome_core::{Draft, IndexedPart, Profile, Protection, Strategy, Tokens, ToolName};
use serde_json::Value;

use crate::summarize::Summarize;

/// A strategy with its parameters. Its text has the form of [`StrategySpec`], which also creates the strategy.
///
/// One stage has no counterpart there: `fixed-summary:preserve-recent=3:tokens=20`, a summary of a fixed size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TestStrategy {
    /// `truncate`
    Truncate {
        /// The number of the newest turns that stay if possible.
        recent: u32,
        /// Whether all instructions of the caller stay, or only the leading ones.
        system: bool,
        /// Whether the first user message stays.
        first_user: bool,
        /// The share that stays without a goal.
        strength: Strength,
    },
    /// `truncate:walk=newest-first`
    Newest,
    /// `salience`, with [`worth`] as the worth of a group.
    Salience {
        /// The number of the newest turns that come first.
        recent: u32,
        /// The number of turns after which a group is updated, as [`is_updated`] defines it; 0: never. Only properties
        /// set it.
        updates: u32,
    },
    /// `ledger`
    Ledger {
        /// The share of the goal, in percent.
        share: u32,
    },
    /// `window`
    Window {
        /// The size of the window.
        window: Window,
        /// Whether the first user message stays.
        first_user: bool,
    },
    /// `tool-results`
    Clear {
        /// The number of the newest tool uses that keep their results.
        keep: u32,
        /// The least number of tokens that a clearing must free.
        at_least: u32,
        /// The tool whose results are never cleared.
        exclude: Option<String>,
        /// Whether arguments are cleared too.
        inputs: bool,
        /// The tokens of the note.
        placeholder: u32,
    },
    /// `media`
    Media {
        /// The number of the newest turns that keep their media.
        keep: u32,
    },
    /// `reasoning`
    Reasoning {
        /// The profile of the provider.
        target: Profile,
        /// The number of the newest turns that keep their reasoning.
        keep: u32,
    },
    /// `clamp`
    Clamp {
        /// The maximum tokens of a part.
        max: u32,
    },
    /// `ephemeral`
    Ephemeral,
    /// `fixed-summary`
    FixedSummary(Summarize),
    /// `summarize`
    Summarization {
        /// The number of the newest turns that stay if possible.
        recent: u32,
        /// The maximum tokens of a summary.
        max: u32,
        /// The share of the goal for the words of users.
        users: u32,
    },
    /// `tool-drop`
    Exchanges {
        /// The number of the newest exchanges that stay.
        keep: u32,
    },
    /// `tool-digest`
    Digest {
        /// The number of the newest exchanges that stay.
        keep: u32,
        /// The maximum number of characters of a digest.
        chars: u32,
    },
    /// `supersede`, with one key for each of two tools.
    Supersede {
        /// The tokens of the note.
        placeholder: u32,
    },
    /// `context-window`
    ContextWindow {
        /// The window of the model.
        window: u32,
        /// The maximum tokens of an answer.
        output: u32,
    },
    /// Several stages, with `|` between them.
    Pipeline(Vec<Self>),
}

impl TestStrategy {
    /// Truncation with its defaults.
    #[must_use]
    pub const fn truncate() -> Self {
        Self::Truncate { recent: 2, system: true, first_user: true, strength: Strength::Moderate }
    }

    /// A window that keeps the first user message.
    #[must_use]
    pub const fn window(window: Window) -> Self {
        Self::Window { window, first_user: true }
    }

    /// Whether it continues until the request fits and the goal is met, if possible. A pipeline that replaces groups
    /// does not, because no later stage removes the stand-ins.
    #[must_use]
    pub fn goes_all_the_way(&self) -> bool {
        match self {
            Self::Pipeline(stages) => stages.iter().any(Self::goes_all_the_way) && !self.replaces(),
            Self::ContextWindow { .. } => false,
            one => one.takes_a_share(),
        }
    }

    /// Whether it drops a share of the conversation in each pass without a goal.
    #[must_use]
    pub fn takes_a_share(&self) -> bool {
        match self {
            Self::Truncate { .. }
            | Self::Newest
            | Self::Salience { .. }
            | Self::Window { .. }
            | Self::ContextWindow { .. } => true,
            Self::Pipeline(stages) => stages.iter().any(Self::takes_a_share),
            _ => false,
        }
    }

    /// Whether it leaves a ledger.
    #[must_use]
    pub fn leaves_a_ledger(&self) -> bool {
        match self {
            Self::Ledger { .. } => true,
            Self::Pipeline(stages) => stages.iter().any(Self::leaves_a_ledger),
            _ => false,
        }
    }

    /// Whether a pipeline may have these stages in this order.
    #[must_use]
    pub fn is_in_order(stages: &[Self]) -> bool {
        let made: Vec<&dyn Strategy> = stages.iter().map(|stage| stage as &dyn Strategy).collect();
        Pipeline::new(&made).is_ok()
    }

    /// Lends the strategy to `use_it`. It comes from the text form, or has functions that read no texts, because these
    /// conversations have none.
    fn with(&self, use_it: &mut dyn FnMut(&dyn Strategy)) {
        match self {
            Self::Salience { recent, updates } => {
                let worths = |draft: &Draft<'_>| {
                    draft.index().groups().map(|group| worth(group.turn().0, group.is_request())).collect()
                };
                let made = Salience::new(worths).truncation(Truncation::new().preserve_recent(*recent));
                use_it(&made.updates(|draft| updated(draft, *updates)));
            }
            Self::Supersede { placeholder } => {
                use_it(&Supersede::<_>::new(by_tool).placeholder(Tokens(*placeholder)));
            }
            Self::FixedSummary(summarize) => use_it(summarize),
            Self::Pipeline(stages) => {
                let stages: Vec<&dyn Strategy> = stages.iter().map(|stage| stage as &dyn Strategy).collect();
                use_it(&Pipeline::new(&stages).expect("what replaces comes last"));
            }
            other => {
                let spec: StrategySpec = other.to_string().parse().expect("a strategy of the library");
                use_it(&spec.strategy(SpecTexts::default()));
            }
        }
    }

    /// The stage that a table of [`StrategySpec`] describes.
    fn of_stage(stage: &Value) -> Option<Self> {
        let number = |name: &str, default: u32| {
            let said = stage.get(name).and_then(Value::as_u64);
            said.map_or(default, |number| u32::try_from(number).unwrap_or(u32::MAX))
        };
        let switch = |name: &str, default| stage.get(name).and_then(Value::as_bool).unwrap_or(default);
        let word = |name: &str| stage.get(name).and_then(Value::as_str);
        let (recent, keep) = (number("preserve-recent", 2), number("keep", 3));
        Some(match word("strategy")? {
            "truncate" if word("walk") == Some("newest-first") => Self::Newest,
            "truncate" => Self::Truncate {
                recent,
                system: switch("preserve-system", true),
                first_user: switch("preserve-first-user", true),
                strength: match word("strength") {
                    Some("light") => Strength::Light,
                    Some("aggressive") => Strength::Aggressive,
                    _ => Strength::Moderate,
                },
            },
            "salience" => Self::Salience { recent, updates: 0 },
            "ledger" => Self::Ledger { share: number("share", 15) },
            "window" => {
                let has = |name| stage.get(name).is_some();
                let window = match () {
                    () if has("keep-turns") => Window::Turns(number("keep-turns", 0)),
                    () if has("keep-groups") => Window::Groups(number("keep-groups", 0)),
                    () if has("keep-tokens") => Window::Tokens(u64::from(number("keep-tokens", 0))),
                    () => Window::Goal,
                };
                Self::Window { window, first_user: switch("preserve-first-user", true) }
            }
            "tool-results" => Self::Clear {
                keep,
                at_least: number("clear-at-least", 0),
                exclude: stage.pointer("/exclude-tools/0").and_then(Value::as_str).map(str::to_owned),
                inputs: switch("clear-inputs", false),
                placeholder: number("placeholder", 9),
            },
            "media" => Self::Media { keep: number("keep-turns", 2) },
            "reasoning" => Self::Reasoning {
                target: word("profile").and_then(Profile::by_name)?,
                keep: number("keep-turns", 1),
            },
            "clamp" => Self::Clamp { max: number("max-part-tokens", 0) },
            "ephemeral" => Self::Ephemeral,
            "summarize" => Self::Summarization {
                recent: number("preserve-recent", 3),
                max: number("summary-tokens-max", 4_000),
                users: number("keep-user-messages", 20),
            },
            "tool-drop" => Self::Exchanges { keep: number("keep", 1) },
            "tool-digest" => Self::Digest { keep: number("keep", 1), chars: number("chars-max", 4_096) },
            "supersede" => Self::Supersede { placeholder: number("placeholder", 9) },
            "context-window" => {
                Self::ContextWindow { window: number("window", 0), output: number("max-output", 0) }
            }
            _ => return None,
        })
    }
}

/// The worth of a group, by its turn. The order differs from the order of age, and many groups have equal worth.
#[must_use]
pub fn worth(turn: u32, is_request: bool) -> u64 {
    (u64::from(turn) * 7 + u64::from(is_request) * 3) % 5
}

/// Whether a group of the turn `newer` updates a group of the turn `older`. The groups of every second turn are updated
/// `turns` turns later.
#[must_use]
pub const fn is_updated(older: u32, newer: u32, turns: u32) -> bool {
    turns > 0 && older.is_multiple_of(2) && older + turns == newer
}

/// Pairs of leaders: an updated group, and a group that updates it.
fn updated(draft: &Draft<'_>, turns: u32) -> Vec<(u32, u32)> {
    let groups = || draft.index().groups();
    let pairs = groups().flat_map(|older| groups().map(move |newer| (older, newer)));
    let pairs = pairs.filter(|(older, newer)| is_updated(older.turn().0, newer.turn().0, turns));
    pairs.map(|(older, newer)| (older.leader(), newer.leader())).collect()
}

/// The key of the results of one tool.
fn by_tool(part: &IndexedPart<'_>) -> Option<u64> {
    let names = ["search", "read"];
    let at = names.iter().position(|name| part.tool() == Some(ToolName::new(name)))?;
    u64::try_from(at).ok()
}

impl Strategy for TestStrategy {
    fn name(&self) -> &'static str {
        let mut name = "";
        self.with(&mut |strategy| name = strategy.name());
        name
    }

    fn protection(&self) -> Protection {
        let mut protection = Protection::default();
        self.with(&mut |strategy| protection = strategy.protection());
        protection
    }

    fn is_monotone(&self) -> bool {
        let mut monotone = false;
        self.with(&mut |strategy| monotone = strategy.is_monotone());
        monotone
    }

    fn replaces(&self) -> bool {
        let mut replaces = false;
        self.with(&mut |strategy| replaces = strategy.replaces());
        replaces
    }

    fn reserve(&self, draft: &Draft<'_>) -> u64 {
        let mut reserve = 0;
        self.with(&mut |strategy| reserve = strategy.reserve(draft));
        reserve
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        self.with(&mut |strategy| strategy.plan(draft));
    }
}

impl fmt::Display for TestStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncate { recent, system, first_user, strength } => {
                let strength = match strength {
                    Strength::Light => "light",
                    Strength::Aggressive => "aggressive",
                    _ => "moderate",
                };
                write!(f, "truncate:preserve-recent={recent}:preserve-system={system}")?;
                write!(f, ":preserve-first-user={first_user}:strength={strength}")
            }
            Self::Newest => f.write_str("truncate:walk=newest-first"),
            Self::Salience { recent, .. } => write!(f, "salience:preserve-recent={recent}"),
            Self::Ledger { share } => write!(f, "ledger:share={share}"),
            Self::Window { window, first_user } => {
                f.write_str("window")?;
                match window {
                    Window::Turns(turns) => write!(f, ":keep-turns={turns}")?,
                    Window::Groups(groups) => write!(f, ":keep-groups={groups}")?,
                    Window::Tokens(tokens) => write!(f, ":keep-tokens={tokens}")?,
                    _ => {}
                }
                write!(f, ":preserve-first-user={first_user}")
            }
            Self::Clear { keep, at_least, exclude, inputs, placeholder } => {
                write!(f, "tool-results:keep={keep}:clear-at-least={at_least}")?;
                exclude.iter().try_for_each(|tool| write!(f, ":exclude-tools={tool}"))?;
                write!(f, ":clear-inputs={inputs}:placeholder={placeholder}")
            }
            Self::Media { keep } => write!(f, "media:keep-turns={keep}"),
            Self::Reasoning { target, keep } => {
                write!(f, "reasoning:profile={}:keep-turns={keep}", target.as_str())
            }
            Self::Clamp { max } => write!(f, "clamp:max-part-tokens={max}"),
            Self::Ephemeral => f.write_str("ephemeral"),
            Self::FixedSummary(Summarize { recent, tokens }) => {
                write!(f, "{FIXED_SUMMARY}:preserve-recent={recent}:tokens={tokens}")
            }
            Self::Summarization { recent, max, users } => {
                write!(f, "summarize:preserve-recent={recent}:summary-tokens-max={max}")?;
                write!(f, ":keep-user-messages={users}")
            }
            Self::Exchanges { keep } => write!(f, "tool-drop:keep={keep}"),
            Self::Digest { keep, chars } => write!(f, "tool-digest:keep={keep}:chars-max={chars}"),
            Self::Supersede { placeholder } => write!(f, "supersede:placeholder={placeholder}"),
            Self::ContextWindow { window, output } => {
                write!(f, "context-window:window={window}:max-output={output}")
            }
            Self::Pipeline(stages) => {
                let stages: Vec<String> = stages.iter().map(ToString::to_string).collect();
                f.write_str(&stages.join(" | "))
            }
        }
    }
}

impl FromStr for TestStrategy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains('|') {
            return text.split('|').map(str::parse).collect::<Result<_, _>>().map(Self::Pipeline);
        }
        if let Some(parameters) = text.trim().strip_prefix(FIXED_SUMMARY) {
            let number = |name: &str, default| {
                let said = parameters.split(':').find_map(|said| said.strip_prefix(name)?.strip_prefix('='));
                said.map_or(Ok(default), |said| said.parse().map_err(|error| format!("{text}: {error}")))
            };
            let (recent, tokens) = (number("preserve-recent", 3)?, number("tokens", 20)?);
            return Ok(Self::FixedSummary(Summarize { recent, tokens }));
        }
        let spec: StrategySpec = text.parse().map_err(|error| format!("{text}: {error}"))?;
        let value = serde_json::to_value(&spec).map_err(|error| error.to_string())?;
        let stage = value.get(0).unwrap_or(&value);
        Self::of_stage(stage).ok_or(format!("{text}: not in these tests"))
    }
}

/// The stage with a summary of a fixed size.
const FIXED_SUMMARY: &str = "fixed-summary";
