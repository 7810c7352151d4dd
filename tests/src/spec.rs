//! Strategies as data: written in the corpus, drawn by properties, listed in the grid.

use core::fmt;
use core::str::FromStr;

use epitome_compactors::{
    ContextWindow, EphemeralFirst, Ledger, MediaClearing, NewestFirst, OversizedClamp, Pipeline,
    ReasoningClearing, Salience, SlidingWindow, Strength, Summarization, Supersede, ToolExchangeDigest,
    ToolExchangeDrop, ToolResultClearing, Truncation, Window,
};
use epitome_core::{Draft, IndexedPart, Profile, Protection, Strategy, Tokens, ToolName};

use crate::summarize::Summarize;

/// A strategy with its parameters, as a word and `name=value` pairs; `|` between the stages of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spec {
    /// `truncate recent=2 system=all first_user=kept strength=moderate`
    Truncate {
        /// Turns that are spared if possible.
        recent: u32,
        /// Whether all instructions of the caller stay, or only those that stand first.
        system: bool,
        /// Whether the first user message stays.
        first_user: bool,
        /// The part that stays without a goal.
        strength: Strength,
    },
    /// `newest`: truncation that fills the goal from the newest group on.
    Newest,
    /// `salience recent=2 updates=3`: the worth of a group is what [`worth`] says.
    Salience {
        /// The number of the newest turns that come first.
        recent: u32,
        /// The number of turns after which a group is updated, as [`is_updated`] says; 0: none is.
        updates: u32,
    },
    /// `ledger share=15`
    Ledger {
        /// Its share of the goal, in percent.
        share: u32,
    },
    /// `window turns=2 first_user=kept`; or `groups=`, `tokens=`, or `goal`
    Window {
        /// The size of the window.
        window: Window,
        /// Whether the first user message stays.
        first_user: bool,
    },
    /// `clear keep=3 at_least=0 exclude=search inputs=left placeholder=9`
    Clear {
        /// The number of the newest tool uses that keep their results.
        keep: u32,
        /// The least number of tokens that a clearing must free.
        at_least: u32,
        /// The tool whose results are never cleared.
        exclude: Option<String>,
        /// Whether arguments go too.
        inputs: bool,
        /// The tokens of the note.
        placeholder: u32,
    },
    /// `media keep=2`
    Media {
        /// The number of the newest turns that keep their media.
        keep: u32,
    },
    /// `reasoning target=gemini keep=1`
    Reasoning {
        /// The profile whose rules hold.
        target: Profile,
        /// The number of the newest turns that keep their reasoning.
        keep: u32,
    },
    /// `clamp max=1000`
    Clamp {
        /// The maximum tokens of a part.
        max: u32,
    },
    /// `ephemeral`
    Ephemeral,
    /// `summarize recent=3 tokens=20`
    Summarize(Summarize),
    /// `summarization recent=3 max=4000 users=0`
    Summarization {
        /// The number of the newest turns that are spared if possible.
        recent: u32,
        /// The maximum tokens of a summary.
        max: u32,
        /// The share of the goal for the words of users.
        users: u32,
    },
    /// `drop-exchanges keep=1`
    Exchanges {
        /// The number of the newest exchanges that stay.
        keep: u32,
    },
    /// `digest keep=1 chars=4096`
    Digest {
        /// The number of the newest exchanges that stay.
        keep: u32,
        /// The maximum number of characters of a digest.
        chars: u32,
    },
    /// `supersede placeholder=9`: of the results of each tool the newest stays.
    Supersede {
        /// The tokens of the note.
        placeholder: u32,
    },
    /// `context-window window=1000 output=100`
    ContextWindow {
        /// The window of the model.
        window: u32,
        /// The maximum tokens of an answer.
        output: u32,
    },
    /// `window turns=4 | truncate`
    Pipeline(Vec<Self>),
}

impl Spec {
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

    /// Clearing with its defaults.
    #[must_use]
    pub const fn clear() -> Self {
        Self::Clear { keep: 3, at_least: 0, exclude: None, inputs: false, placeholder: 9 }
    }

    /// Whether it goes on until the request fits and the goal is met, if that can be. What a stage puts in the place of
    /// others stays, whatever follows.
    #[must_use]
    pub fn goes_all_the_way(&self) -> bool {
        match self {
            Self::Pipeline(stages) => stages.iter().any(Self::goes_all_the_way) && !self.replaces(),
            Self::ContextWindow { .. } => false,
            one => one.takes_a_share(),
        }
    }

    /// Whether it drops a share of what there is, each time that it is asked without a goal.
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

    /// Lends the strategy to `use_it`.
    fn with(&self, use_it: &mut dyn FnMut(&dyn Strategy)) {
        match self {
            Self::Truncate { recent, system, first_user, strength } => use_it(
                &Truncation::new()
                    .preserve_recent(*recent)
                    .preserve_system(*system)
                    .preserve_first_user(*first_user)
                    .strength(*strength),
            ),
            Self::Newest => use_it(&NewestFirst::new()),
            Self::Salience { recent, updates } => {
                let worths = |draft: &Draft<'_>| {
                    draft.index().groups().map(|group| worth(group.turn().0, group.is_request())).collect()
                };
                let made = Salience::new(worths).truncation(Truncation::new().preserve_recent(*recent));
                use_it(&made.updates(|draft| updated(draft, *updates)));
            }
            Self::Ledger { share } => use_it(&Ledger::new().share(*share)),
            Self::Window { window, first_user } => {
                use_it(&SlidingWindow::new(*window).preserve_first_user(*first_user));
            }
            Self::Clear { keep, at_least, exclude, inputs, placeholder } => {
                let exclude: Vec<ToolName> = exclude.iter().map(|name| ToolName::new(name)).collect();
                use_it(
                    &ToolResultClearing::new()
                        .keep(*keep)
                        .clear_at_least(u64::from(*at_least))
                        .exclude_tools(&exclude)
                        .clear_inputs(*inputs)
                        .placeholder(Tokens(*placeholder)),
                );
            }
            Self::Media { keep } => use_it(&MediaClearing::new().keep_turns(*keep)),
            Self::Reasoning { target, keep } => use_it(&ReasoningClearing::new(*target).keep_turns(*keep)),
            Self::Clamp { max } => use_it(&OversizedClamp::new(Tokens(*max))),
            Self::Ephemeral => use_it(&EphemeralFirst),
            Self::Summarize(summarize) => use_it(summarize),
            Self::Summarization { recent, max, users } => {
                let made = Summarization::new().preserve_recent(*recent).summary_tokens_max(Tokens(*max));
                use_it(&made.keep_user_messages(*users));
            }
            Self::Exchanges { keep } => use_it(&ToolExchangeDrop::new().keep(*keep)),
            Self::Digest { keep, chars } => use_it(&ToolExchangeDigest::new().keep(*keep).chars_max(*chars)),
            Self::Supersede { placeholder } => {
                use_it(&Supersede::<_>::new(by_tool).placeholder(Tokens(*placeholder)));
            }
            Self::ContextWindow { window, output } => {
                use_it(&ContextWindow::new(u64::from(*window), u64::from(*output)));
            }
            Self::Pipeline(stages) => {
                let stages: Vec<&dyn Strategy> = stages.iter().map(|stage| stage as &dyn Strategy).collect();
                use_it(&Pipeline::new(&stages).expect("what replaces comes last"));
            }
        }
    }
}

/// The worth of a group of a turn, in an order that is not that of age; equal for many.
#[must_use]
pub fn worth(turn: u32, is_request: bool) -> u64 {
    (u64::from(turn) * 7 + u64::from(is_request) * 3) % 5
}

/// Whether a group of the turn `newer` updates one of the turn `older`: all of every other turn are updated so many turns later.
#[must_use]
pub const fn is_updated(older: u32, newer: u32, turns: u32) -> bool {
    turns > 0 && older.is_multiple_of(2) && older + turns == newer
}

/// The leaders of all that are updated, each with all that update it.
fn updated(draft: &Draft<'_>, turns: u32) -> Vec<(u32, u32)> {
    let groups = || draft.index().groups();
    let pairs = groups().flat_map(|older| groups().map(move |newer| (older, newer)));
    let pairs = pairs.filter(|(older, newer)| is_updated(older.turn().0, newer.turn().0, turns));
    pairs.map(|(older, newer)| (older.leader(), newer.leader())).collect()
}

impl Strategy for Spec {
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

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncate { recent, system, first_user, strength } => {
                let system = if *system { "all" } else { "leading" };
                let strength = match strength {
                    Strength::Light => "light",
                    Strength::Aggressive => "aggressive",
                    _ => "moderate",
                };
                let first_user = kept(*first_user);
                write!(
                    f,
                    "truncate recent={recent} system={system} first_user={first_user} strength={strength}"
                )
            }
            Self::Newest => f.write_str("newest"),
            Self::Salience { recent, updates: 0 } => write!(f, "salience recent={recent}"),
            Self::Salience { recent, updates } => write!(f, "salience recent={recent} updates={updates}"),
            Self::Ledger { share } => write!(f, "ledger share={share}"),
            Self::Window { window, first_user } => {
                match window {
                    Window::Turns(turns) => write!(f, "window turns={turns}")?,
                    Window::Groups(groups) => write!(f, "window groups={groups}")?,
                    Window::Tokens(tokens) => write!(f, "window tokens={tokens}")?,
                    _ => f.write_str("window goal")?,
                }
                write!(f, " first_user={}", kept(*first_user))
            }
            Self::Clear { keep, at_least, exclude, inputs, placeholder } => {
                write!(f, "clear keep={keep} at_least={at_least}")?;
                exclude.iter().try_for_each(|tool| write!(f, " exclude={tool}"))?;
                let inputs = if *inputs { "cleared" } else { "left" };
                write!(f, " inputs={inputs} placeholder={placeholder}")
            }
            Self::Media { keep } => write!(f, "media keep={keep}"),
            Self::Reasoning { target, keep } => {
                write!(f, "reasoning target={} keep={keep}", target.as_str())
            }
            Self::Clamp { max } => write!(f, "clamp max={max}"),
            Self::Ephemeral => f.write_str("ephemeral"),
            Self::Summarize(Summarize { recent, tokens }) => {
                write!(f, "summarize recent={recent} tokens={tokens}")
            }
            Self::Summarization { recent, max, users } => {
                write!(f, "summarization recent={recent} max={max} users={users}")
            }
            Self::Exchanges { keep } => write!(f, "drop-exchanges keep={keep}"),
            Self::Digest { keep, chars } => write!(f, "digest keep={keep} chars={chars}"),
            Self::Supersede { placeholder } => write!(f, "supersede placeholder={placeholder}"),
            Self::ContextWindow { window, output } => {
                write!(f, "context-window window={window} output={output}")
            }
            Self::Pipeline(stages) => {
                let stages: Vec<String> = stages.iter().map(ToString::to_string).collect();
                write!(f, "{}{}", if stages.len() == 1 { "| " } else { "" }, stages.join(" | "))
            }
        }
    }
}

impl FromStr for Spec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains('|') {
            let stages = text.split('|').map(str::trim).filter(|stage| !stage.is_empty());
            return stages.map(str::parse).collect::<Result<_, _>>().map(Self::Pipeline);
        }
        let mut words = text.split_whitespace();
        let mut spec = match words.next() {
            Some("truncate") => Self::truncate(),
            Some("newest") => Self::Newest,
            Some("salience") => Self::Salience { recent: 2, updates: 0 },
            Some("ledger") => Self::Ledger { share: 15 },
            Some("window") => Self::window(Window::Goal),
            Some("clear") => Self::clear(),
            Some("media") => Self::Media { keep: 2 },
            Some("reasoning") => Self::Reasoning { target: Profile::Permissive, keep: 1 },
            Some("clamp") => Self::Clamp { max: 1_000 },
            Some("ephemeral") => Self::Ephemeral,
            Some("summarize") => Self::Summarize(Summarize { recent: 3, tokens: 20 }),
            Some("summarization") => Self::Summarization { recent: 3, max: 4_000, users: 0 },
            Some("drop-exchanges") => Self::Exchanges { keep: 1 },
            Some("digest") => Self::Digest { keep: 1, chars: 4_096 },
            Some("supersede") => Self::Supersede { placeholder: 9 },
            Some("context-window") => Self::ContextWindow { window: 1_000, output: 0 },
            other => return Err(format!("no strategy {other:?}")),
        };
        words.try_for_each(|word| spec.set(word))?;
        Ok(spec)
    }
}

impl Spec {
    fn set(&mut self, word: &str) -> Result<(), String> {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let number = || value.parse::<u32>().map_err(|error| format!("{word}: {error}"));
        match (self, name) {
            (Self::Truncate { recent, .. } | Self::Salience { recent, .. }, "recent") => *recent = number()?,
            (Self::Salience { updates, .. }, "updates") => *updates = number()?,
            (Self::Truncate { system, .. }, "system") => *system = value == "all",
            (Self::Truncate { strength, .. }, "strength") => {
                *strength = match value {
                    "light" => Strength::Light,
                    "moderate" => Strength::Moderate,
                    "aggressive" => Strength::Aggressive,
                    _ => return Err(format!("no strength {value}")),
                }
            }
            (Self::Truncate { first_user, .. } | Self::Window { first_user, .. }, "first_user") => {
                *first_user = value == "kept";
            }
            (Self::Ledger { share }, "share") => *share = number()?,
            (Self::Window { window, .. }, "turns") => *window = Window::Turns(number()?),
            (Self::Window { window, .. }, "groups") => *window = Window::Groups(number()?),
            (Self::Window { window, .. }, "tokens") => *window = Window::Tokens(u64::from(number()?)),
            (Self::Window { .. }, "goal") => {}
            (Self::Clear { keep, .. } | Self::Media { keep } | Self::Reasoning { keep, .. }, "keep") => {
                *keep = number()?
            }
            (Self::Exchanges { keep } | Self::Digest { keep, .. }, "keep") => *keep = number()?,
            (Self::Digest { chars, .. }, "chars") => *chars = number()?,
            (Self::ContextWindow { window, .. }, "window") => *window = number()?,
            (Self::ContextWindow { output, .. }, "output") => *output = number()?,
            (Self::Summarize(summarize), "recent") => summarize.recent = number()?,
            (Self::Summarize(summarize), "tokens") => summarize.tokens = number()?,
            (Self::Summarization { recent, .. }, "recent") => *recent = number()?,
            (Self::Summarization { users, .. }, "users") => *users = number()?,
            (Self::Clamp { max } | Self::Summarization { max, .. }, "max") => *max = number()?,
            (Self::Clear { at_least, .. }, "at_least") => *at_least = number()?,
            (Self::Clear { exclude, .. }, "exclude") => *exclude = Some(value.to_owned()),
            (Self::Clear { inputs, .. }, "inputs") => *inputs = value == "cleared",
            (Self::Clear { placeholder, .. } | Self::Supersede { placeholder }, "placeholder") => {
                *placeholder = number()?;
            }
            (Self::Reasoning { target, .. }, "target") => {
                *target = Profile::by_name(value).ok_or(format!("no target {value}"))?;
            }
            _ => return Err(format!("no parameter {word}")),
        }
        Ok(())
    }
}

/// The key of the results of one tool.
fn by_tool(part: &IndexedPart<'_>) -> Option<u64> {
    let names = ["search", "read"];
    let at = names.iter().position(|name| part.tool() == Some(ToolName::new(name)))?;
    u64::try_from(at).ok()
}

const fn kept(stays: bool) -> &'static str {
    if stays { "kept" } else { "free" }
}
