//! Budgets: values of the caller, checked at each call.

use epitome_core::Budget as Checked;

use crate::call::{Call, Plain};
use crate::error::{Error, code};
use crate::history::History;

/// A budget in tokens. Zero is the default, [`NONE`] is none.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Budget {
    window: u64,
    reserve: u64,
    trigger: u64,
    goal: u64,
    min_reclaim: u64,
}

// SAFETY: numbers.
unsafe impl Plain for Budget {}

/// No reserve, no goal, nothing to reclaim at least.
const NONE: u64 = u64::MAX;

impl Budget {
    pub(crate) fn check(self) -> Result<Checked, Error> {
        let mut budget = Checked::builder();
        if self.window != 0 {
            budget = budget.window(self.window);
        }
        match self.reserve {
            0 => {}
            NONE => budget = budget.reserve(0),
            tokens => budget = budget.reserve(tokens),
        }
        if self.trigger != 0 {
            budget = budget.trigger(self.trigger);
        }
        match self.goal {
            0 => {}
            NONE => budget = budget.without_goal(),
            tokens => budget = budget.goal(tokens),
        }
        match self.min_reclaim {
            0 => {}
            NONE => budget = budget.min_reclaim(0),
            tokens => budget = budget.min_reclaim(tokens),
        }
        Ok(budget.build()?)
    }
}

/// Fills in the defaults of a budget, if its figures do not contradict each other.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epitome_kernel_budget_check(budget: *const Budget, checked: *mut Budget) -> Error {
    // SAFETY: the rules of the header for the pointers of a call.
    let call = unsafe { Call::new(core::ptr::null()) };
    code((|| {
        let to = call.out(checked)?;
        let budget = call.value(budget)?.check()?;
        let or_none = |tokens: u64| if tokens == 0 { NONE } else { tokens };
        to.put(Budget {
            window: budget.window(),
            reserve: or_none(budget.reserve()),
            trigger: budget.trigger(),
            goal: budget.goal().unwrap_or(NONE),
            min_reclaim: or_none(budget.min_reclaim()),
        });
        Ok(())
    })())
}

/// Tells whether a compaction is due.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epitome_kernel_is_due(
    history: *const History,
    budget: *const Budget,
    is_due: *mut u32,
) -> Error {
    // SAFETY: the rules of the header for the pointers of a call.
    let call = unsafe { Call::new(history) };
    code((|| {
        let to = call.needed(is_due)?;
        let budget = call.value(budget)?.check()?;
        to.put(u32::from(budget.is_due(call.history()?.tokens())));
        Ok(())
    })())
}
