//! Compaction: makes a plan, and commits it.

use epitome_core::{ClassEstimator, Compacted as Freed, Outcome, Pass, PlanError, Unchanged};

use crate::budget::Budget;
use crate::call::{Call, Plain, Text};
use crate::error::{Error, code};
use crate::history::History;
use crate::stages::{Stage, Stages};

/// The result of a plan.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PlanResult {
    outcome: i32,
    tokens_after: u64,
    floor: u64,
    limit: u64,
}

/// Whether there is something to compact.
#[repr(i32)]
#[derive(Clone, Copy)]
pub enum PlanOutcome {
    Planned = 1,
    AtGoal = 2,
    NothingToDrop = 3,
    TooLittle = 4,
    Infeasible = 5,
}

/// Why a plan is made.
#[repr(i32)]
pub enum PassCode {
    Proactive = 1,
    Manual = 2,
    Overflow = 3,
}

/// The sizes that a compaction has freed.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Compacted {
    tokens: u64,
    bytes: u32,
    messages: u32,
    results: u32,
}

// SAFETY: numbers.
unsafe impl Plain for PlanResult {}
// SAFETY: numbers.
unsafe impl Plain for Compacted {}

/// Plans a compaction.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epitome_kernel_plan(
    history: *mut History,
    budget: *const Budget,
    pass: i32,
    stages: *const Stage,
    stage_count: usize,
    result: *mut PlanResult,
) -> Error {
    // SAFETY: the rules of the header for the pointers of a call.
    let mut call = unsafe { Call::new(history) };
    code((|| {
        let to = call.needed(result)?;
        let (budget, pass) = (call.value(budget)?.check()?, self::pass(pass)?);
        let stages = Stages::read(&call, stages, stage_count)?;
        let history = call.change()?;
        let before = history.tokens();
        let mut plan = PlanResult {
            outcome: PlanOutcome::Planned as i32,
            tokens_after: before,
            floor: 0,
            limit: budget.limit(),
        };
        let done = stages.as_one(|strategy| match history.plan(&budget, pass, strategy) {
            Ok(Outcome::Planned(planned)) => {
                plan.tokens_after = planned.tokens_after();
                Ok(())
            }
            Ok(Outcome::Unchanged(why)) => {
                plan.outcome = why_unchanged(why) as i32;
                Ok(())
            }
            Err(PlanError::Infeasible(infeasible)) => {
                plan.outcome = PlanOutcome::Infeasible as i32;
                plan.floor = infeasible.floor;
                Err(Error::Infeasible)
            }
            Err(_) => Err(Error::Infeasible),
        });
        to.put(plan);
        done
    })())
}

/// Makes the plan so.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epitome_kernel_compact(
    history: *mut History,
    note: Text,
    compacted: *mut Compacted,
) -> Error {
    // SAFETY: the rules of the header for the pointers of a call.
    let mut call = unsafe { Call::new(history) };
    code((|| {
        let (to, note) = (call.out(compacted)?, call.text(note)?);
        let history = call.change()?;
        let done = match note {
            Some(note) => history.compact_with(note, &ClassEstimator::new()),
            None => history.compact(),
        };
        to.put(done?.into());
        Ok(())
    })())
}

impl From<Freed> for Compacted {
    fn from(freed: Freed) -> Self {
        // A history has fewer than 2^32 of each.
        Self {
            tokens: freed.tokens,
            bytes: freed.bytes as u32,
            messages: freed.messages as u32,
            results: freed.results as u32,
        }
    }
}

fn why_unchanged(why: Unchanged) -> PlanOutcome {
    match why {
        Unchanged::AtGoal => PlanOutcome::AtGoal,
        Unchanged::TooLittle { .. } => PlanOutcome::TooLittle,
        _ => PlanOutcome::NothingToDrop,
    }
}

fn pass(code: i32) -> Result<Pass, Error> {
    const PROACTIVE: i32 = PassCode::Proactive as i32;
    const MANUAL: i32 = PassCode::Manual as i32;
    const OVERFLOW: i32 = PassCode::Overflow as i32;
    match code {
        PROACTIVE => Ok(Pass::Proactive),
        MANUAL => Ok(Pass::Manual),
        OVERFLOW => Ok(Pass::Overflow),
        _ => Err(Error::Value),
    }
}
