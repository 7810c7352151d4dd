//! Strategies as data: written in the corpus, drawn by properties, listed in the grid.

use core::fmt;
use core::str::FromStr;

use epitome_compactors::{Pipeline, SlidingWindow, Strength, Truncation, Window};
use epitome_core::{Draft, Protection, Strategy};

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
        /// How much stays without a goal.
        strength: Strength,
    },
    /// `window turns=2 first_user=kept`; or `groups=`, `tokens=`, or `goal`
    Window {
        /// How large it is.
        window: Window,
        /// Whether the first user message stays.
        first_user: bool,
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
            Self::Window { window, first_user } => {
                use_it(&SlidingWindow::new(*window).preserve_first_user(*first_user));
            }
            Self::Pipeline(stages) => {
                let stages: Vec<&dyn Strategy> = stages.iter().map(|stage| stage as &dyn Strategy).collect();
                use_it(&Pipeline::new(&stages));
            }
        }
    }
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
            Self::Window { window, first_user } => {
                match window {
                    Window::Turns(turns) => write!(f, "window turns={turns}")?,
                    Window::Groups(groups) => write!(f, "window groups={groups}")?,
                    Window::Tokens(tokens) => write!(f, "window tokens={tokens}")?,
                    _ => f.write_str("window goal")?,
                }
                write!(f, " first_user={}", kept(*first_user))
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
            Some("window") => Self::window(Window::Goal),
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
            (Self::Truncate { recent, .. }, "recent") => *recent = number()?,
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
            (Self::Window { window, .. }, "turns") => *window = Window::Turns(number()?),
            (Self::Window { window, .. }, "groups") => *window = Window::Groups(number()?),
            (Self::Window { window, .. }, "tokens") => *window = Window::Tokens(u64::from(number()?)),
            (Self::Window { .. }, "goal") => {}
            _ => return Err(format!("no parameter {word}")),
        }
        Ok(())
    }
}

const fn kept(stays: bool) -> &'static str {
    if stays { "kept" } else { "free" }
}
