//! From stages to a strategy.

use core::fmt;
use std::boxed::Box;
use std::string::String;
use std::sync::Arc;
use std::vec::Vec;

use epitome_core::{Draft, IndexedPart, Profile, Protection, Strategy, Tokens, ToolName};

use super::{SpecTexts, Stage, table};
use crate::{
    AgentPreset, ChatPreset, ContextWindow, EphemeralFirst, Ledger, MediaClearing, NewestFirst,
    OversizedClamp, Pipeline, ReasoningClearing, Salience, SlidingWindow, Strength, Summarization, Supersede,
    ToolExchangeDigest, ToolExchangeDrop, ToolResultClearing, Truncation, Window,
};

/// The strategy that a [`StrategySpec`](super::StrategySpec) describes.
pub struct MadeStrategy {
    stages: Arc<[Box<dyn Strategy + Send + Sync>]>,
    /// Number of stages, from the first on, that run.
    count: usize,
}

impl MadeStrategy {
    pub(super) fn new(stages: &[Stage], texts: SpecTexts) -> Self {
        let texts = Arc::new(texts);
        Self { stages: stages.iter().map(|stage| made(stage, &texts)).collect(), count: stages.len() }
    }

    /// The strategy of the first `stages` stages; all, if there are no more. The protection stays that of all
    /// stages: none of them may touch the protected groups.
    #[must_use]
    pub fn first(&self, stages: usize) -> Self {
        Self { stages: Arc::clone(&self.stages), count: stages.min(self.count) }
    }

    /// Runs `run` with the active stages as one strategy.
    fn with<T>(&self, run: impl FnOnce(&dyn Strategy) -> T) -> T {
        self.run_as_one(self.count, run)
    }

    fn run_as_one<T>(&self, count: usize, run: impl FnOnce(&dyn Strategy) -> T) -> T {
        let stages: Vec<&dyn Strategy> =
            self.stages.iter().take(count).map(|stage| &**stage as &dyn Strategy).collect();
        match stages.as_slice() {
            [only] => run(*only),
            stages => run(&Pipeline::of(stages)),
        }
    }
}

impl fmt::Debug for MadeStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.stages.iter().take(self.count).map(|stage| stage.name())).finish()
    }
}

impl Strategy for MadeStrategy {
    fn name(&self) -> &'static str {
        self.with(|strategy| strategy.name())
    }

    fn protection(&self) -> Protection {
        self.run_as_one(usize::MAX, |strategy| strategy.protection())
    }

    fn is_monotone(&self) -> bool {
        self.with(|strategy| strategy.is_monotone())
    }

    fn replaces(&self) -> bool {
        self.with(|strategy| strategy.replaces())
    }

    fn reserve(&self, draft: &Draft<'_>) -> u64 {
        self.with(|strategy| strategy.reserve(draft))
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        self.with(|strategy| strategy.plan(draft));
    }
}

/// Sets a parameter that has a value. The others keep the default of the strategy.
macro_rules! set {
    ($made:ident, $said:expr, $setter:ident) => {
        if let Some(said) = $said {
            $made = $made.$setter(said);
        }
    };
}

fn made(stage: &Stage, texts: &Arc<SpecTexts>) -> Box<dyn Strategy + Send + Sync> {
    match stage.row.name {
        table::WINDOW => Box::new(window(stage)),
        table::TOOL_RESULTS => Box::new(tool_results(stage)),
        table::TOOL_DROP => {
            let mut made = ToolExchangeDrop::new();
            set!(made, stage.count("keep"), keep);
            Box::new(made)
        }
        table::TOOL_DIGEST => {
            let mut made = ToolExchangeDigest::new();
            set!(made, stage.count("keep"), keep);
            set!(made, stage.count("chars-max"), chars_max);
            Box::new(made)
        }
        table::MEDIA => {
            let mut made = MediaClearing::new();
            set!(made, stage.count("keep-turns"), keep_turns);
            Box::new(made)
        }
        table::REASONING => {
            let profile = stage.word("profile").and_then(Profile::by_name).unwrap_or(Profile::Permissive);
            let mut made = ReasoningClearing::new(profile);
            set!(made, stage.count("keep-turns"), keep_turns);
            Box::new(made)
        }
        table::CLAMP => {
            Box::new(OversizedClamp::new(Tokens(stage.count("max-part-tokens").unwrap_or(u32::MAX))))
        }
        table::SUPERSEDE => supersede(stage, texts),
        table::EPHEMERAL => Box::new(EphemeralFirst),
        table::SUMMARIZE => {
            let mut made = Summarization::new();
            set!(made, stage.count("preserve-recent"), preserve_recent);
            set!(made, stage.count("summary-tokens-max").map(Tokens), summary_tokens_max);
            set!(made, stage.count("keep-user-messages"), keep_user_messages);
            set!(made, stage.switch("preserve-first-user"), preserve_first_user);
            Box::new(made)
        }
        table::SALIENCE | table::CHAT => {
            let (texts, near) = (Arc::clone(texts), stage.switch("near-request") != Some(false));
            let newer = Arc::clone(&texts);
            let made = Salience::new(move |draft: &Draft<'_>| texts.worths(draft, near));
            let made = made.updates(move |draft: &Draft<'_>| newer.updates(draft));
            let made = made.truncation(truncation(stage));
            if stage.row.name == table::CHAT { Box::new(ChatPreset::new(made)) } else { Box::new(made) }
        }
        table::LEDGER => {
            let mut made = Ledger::new();
            set!(made, stage.count("share"), share);
            Box::new(made)
        }
        table::AGENT => {
            let mut made = AgentPreset::new();
            set!(made, stage.count("share"), share);
            set!(made, stage.count("keep-user-messages"), keep_user_messages);
            Box::new(made)
        }
        table::CONTEXT_WINDOW => {
            let [window, output] = ["window", "max-output"].map(|name| stage.number(name).unwrap_or(0));
            let made = ContextWindow::new(window, output);
            Box::new(if stage.switch("summarize") == Some(true) { made.summarize() } else { made })
        }
        _ if stage.word("walk") == Some("newest-first") => {
            Box::new(NewestFirst::new().truncation(truncation(stage)))
        }
        _ => Box::new(truncation(stage)),
    }
}

fn truncation(stage: &Stage) -> Truncation {
    let mut made = Truncation::new();
    set!(made, stage.count("preserve-recent"), preserve_recent);
    set!(made, stage.switch("preserve-system"), preserve_system);
    set!(made, stage.switch("preserve-first-user"), preserve_first_user);
    let strength = stage.word("strength").map(|word| match word {
        "light" => Strength::Light,
        "aggressive" => Strength::Aggressive,
        _ => Strength::Moderate,
    });
    set!(made, strength, strength);
    made
}

fn window(stage: &Stage) -> SlidingWindow {
    let turns = stage.count("keep-turns").map(Window::Turns);
    let groups = || stage.count("keep-groups").map(Window::Groups);
    let tokens = || stage.number("keep-tokens").map(Window::Tokens);
    let mut made = SlidingWindow::new(turns.or_else(groups).or_else(tokens).unwrap_or(Window::Goal));
    set!(made, stage.switch("preserve-first-user"), preserve_first_user);
    made
}

fn tool_results(stage: &Stage) -> ToolResults {
    let mut clearing = ToolResultClearing::new();
    set!(clearing, stage.count("keep"), keep);
    set!(clearing, stage.number("clear-at-least"), clear_at_least);
    set!(clearing, stage.switch("clear-inputs"), clear_inputs);
    set!(clearing, stage.number("placeholder").map(Tokens::from_u64), placeholder);
    ToolResults { clearing, excluded: names(stage.tools("exclude-tools")) }
}

fn supersede(stage: &Stage, texts: &Arc<SpecTexts>) -> Box<dyn Strategy + Send + Sync> {
    let (texts, only) = (Arc::clone(texts), names(stage.tools("only-tools")));
    let key = move |part: &IndexedPart<'_>| {
        let counts = only.is_empty() || part.tool().is_some_and(|tool| only.contains(&tool));
        if counts { texts.thing(part) } else { None }
    };
    let mut made = Supersede::<_>::new(key);
    set!(made, stage.number("placeholder").map(Tokens::from_u64), placeholder);
    Box::new(made)
}

fn names(tools: &[String]) -> Vec<ToolName> {
    tools.iter().map(|name| ToolName::new(name)).collect()
}

/// The clearing of tool results, with the names of the spared tools.
struct ToolResults {
    clearing: ToolResultClearing<'static>,
    excluded: Vec<ToolName>,
}

impl Strategy for ToolResults {
    fn name(&self) -> &'static str {
        self.clearing.name()
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        let clearing: ToolResultClearing<'_> = self.clearing;
        clearing.exclude_tools(&self.excluded).plan(draft);
    }
}
