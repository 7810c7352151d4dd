//! Strategies that C selects by number.

use core::array;

#[cfg(feature = "newest-first")]
use epitome_compactors::NewestFirst;
#[cfg(feature = "tool-exchanges")]
use epitome_compactors::ToolExchangeDrop;
use epitome_compactors::{EphemeralFirst, Pipeline, ToolResultClearing, Truncation};
#[cfg(feature = "window")]
use epitome_compactors::{SlidingWindow, Window};
use epitome_core::Strategy;

use crate::call::{Call, Plain};
use crate::error::Error;

/// One strategy of a list.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Stage {
    strategy: i32,
    keep: u32,
}

// SAFETY: numbers.
unsafe impl Plain for Stage {}

/// A strategy. Those that are not built in have numbers too.
#[repr(i32)]
pub enum StrategyCode {
    Truncate = 1,
    ClearToolResults = 2,
    EphemeralFirst = 3,
    DropToolExchanges = 4,
    WindowTurns = 5,
    WindowGoal = 6,
    NewestFirst = 7,
}

/// How many stages a plan may have.
const STAGES_MAX: usize = 4;
/// Value of `keep` for a stage that keeps none of the items that it counts; zero is the stage's default.
const KEEP_NONE: u32 = u32::MAX;

/// The strategy of a stage, with its settings.
enum Rule {
    Truncation(Truncation),
    Clearing(ToolResultClearing<'static>),
    Ephemeral(EphemeralFirst),
    #[cfg(feature = "tool-exchanges")]
    Exchanges(ToolExchangeDrop),
    #[cfg(feature = "window")]
    Window(SlidingWindow),
    #[cfg(feature = "newest-first")]
    Newest(NewestFirst),
}

impl Rule {
    fn new(stage: Stage) -> Result<Self, Error> {
        const TRUNCATE: i32 = StrategyCode::Truncate as i32;
        const CLEAR: i32 = StrategyCode::ClearToolResults as i32;
        const EPHEMERAL: i32 = StrategyCode::EphemeralFirst as i32;
        const EXCHANGES: i32 = StrategyCode::DropToolExchanges as i32;
        const TURNS: i32 = StrategyCode::WindowTurns as i32;
        const GOAL: i32 = StrategyCode::WindowGoal as i32;
        const NEWEST: i32 = StrategyCode::NewestFirst as i32;
        let keep = match stage.keep {
            0 => None,
            KEEP_NONE => Some(0),
            keep => Some(keep),
        };
        Ok(match stage.strategy {
            TRUNCATE => {
                let rule = Truncation::new();
                Self::Truncation(keep.map_or(rule, |turns| rule.preserve_recent(turns)))
            }
            CLEAR => {
                let rule = ToolResultClearing::new();
                Self::Clearing(keep.map_or(rule, |uses| rule.keep(uses)))
            }
            EPHEMERAL => Self::Ephemeral(EphemeralFirst),
            #[cfg(feature = "tool-exchanges")]
            EXCHANGES => {
                let rule = ToolExchangeDrop::new();
                Self::Exchanges(keep.map_or(rule, |exchanges| rule.keep(exchanges)))
            }
            #[cfg(not(feature = "tool-exchanges"))]
            EXCHANGES => return Err(Error::NotBuilt),
            #[cfg(not(feature = "window"))]
            TURNS | GOAL => return Err(Error::NotBuilt),
            #[cfg(not(feature = "newest-first"))]
            NEWEST => return Err(Error::NotBuilt),
            #[cfg(feature = "window")]
            TURNS => Self::Window(SlidingWindow::new(Window::Turns(keep.ok_or(Error::Value)?))),
            #[cfg(feature = "window")]
            GOAL => Self::Window(SlidingWindow::new(Window::Goal)),
            #[cfg(feature = "newest-first")]
            NEWEST => Self::Newest(NewestFirst::new()),
            _ => return Err(Error::Value),
        })
    }

    fn strategy(&self) -> &dyn Strategy {
        match self {
            Self::Truncation(rule) => rule,
            Self::Clearing(rule) => rule,
            Self::Ephemeral(rule) => rule,
            #[cfg(feature = "tool-exchanges")]
            Self::Exchanges(rule) => rule,
            #[cfg(feature = "window")]
            Self::Window(rule) => rule,
            #[cfg(feature = "newest-first")]
            Self::Newest(rule) => rule,
        }
    }
}

/// The strategies of a plan, in order.
pub(crate) struct Stages {
    rules: [Rule; STAGES_MAX],
    len: usize,
}

impl Stages {
    pub(crate) fn read(call: &Call<'_>, stages: *const Stage, count: usize) -> Result<Self, Error> {
        if count == 0 || count > STAGES_MAX {
            return Err(Error::Stages);
        }
        let mut all = Self { rules: array::from_fn(|_| Rule::Ephemeral(EphemeralFirst)), len: count };
        for (at, rule) in all.rules.iter_mut().take(count).enumerate() {
            *rule = Rule::new(call.value(stages.wrapping_add(at))?)?;
        }
        Ok(all)
    }

    /// Calls `work` with all strategies combined into one.
    pub(crate) fn as_one<T>(&self, work: impl FnOnce(&dyn Strategy) -> Result<T, Error>) -> Result<T, Error> {
        let stages = self.rules.each_ref().map(Rule::strategy);
        let stages = stages.get(..self.len).unwrap_or_default();
        work(&Pipeline::new(stages).map_err(|_| Error::Stages)?)
    }
}
