//! The smallest set of parts of Epitome that a device needs, to measure their size in flash: append and stream
//! messages, truncation, clearing of results, compaction in place, the rules of one provider, and the built-in
//! estimator. It prints and checks nothing.
#![no_std]
#![no_main]

use core::hint::black_box;
use core::panic::PanicInfo;

use cortex_m_rt::entry;
use cortex_m_semihosting::debug;
use epitome_compactors::{CLEARED, ToolResultClearing, Truncation};
use epitome_core::message::{Role, SimpleMessage, ToolCallView};
use epitome_core::{
    BoundedHistory, Budget, ClassEstimator, Draft, Full, OpenCallSlots, Outcome, Pass, Profile, Strategy,
    Validator,
};

type History = BoundedHistory<96, 10_504, 36>;

/// The table of interrupts. No interrupt is used; without this table the runtime would reserve memory for 240.
#[unsafe(link_section = ".vector_table.interrupts")]
#[unsafe(no_mangle)]
pub static __INTERRUPTS: [u32; 1] = [0];

#[entry]
fn main() -> ! {
    static mut HISTORY: History = History::new();
    let done = (0..black_box(20)).try_for_each(|_| turn(HISTORY));
    debug::exit(if done.is_ok() { debug::EXIT_SUCCESS } else { debug::EXIT_FAILURE });
    idle()
}

/// The budget, checked at compile time.
const BUDGET: Budget = match Budget::builder().window(400).trigger(200).goal(100).build() {
    Ok(budget) => budget,
    Err(_) => panic!("the goal is not below the trigger"),
};

/// A pipeline whose stages are known at compile time: unused code of the strategies takes no flash.
#[derive(Debug)]
struct ClearThenDrop;

impl Strategy for ClearThenDrop {
    fn name(&self) -> &'static str {
        "clear_then_drop"
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        ToolResultClearing::new().plan(draft);
        if !draft.is_goal_met() {
            Truncation::new().plan(draft);
        }
    }
}

fn turn(history: &mut History) -> Result<(), Full> {
    let counter = ClassEstimator::new();
    history.push(&SimpleMessage::user(black_box("How is the greenhouse?")), &counter)?;
    let calls = [ToolCallView::new(black_box("c1"), "read_sensor", "{}")];
    history.push(&SimpleMessage::calls(&calls), &counter)?;
    history.push(&SimpleMessage::result(black_box("c1"), "21"), &counter)?;
    let mut answer = history.begin(Role::Assistant)?;
    answer.extend(black_box("It is warm enough."))?;
    answer.finish(&counter)?;
    if BUDGET.is_due(history.tokens()) {
        let outcome = history.plan(&BUDGET, Pass::Proactive, &ClearThenDrop);
        if matches!(outcome, Ok(Outcome::Planned(_))) {
            history.compact_with(CLEARED, &counter).map_err(|_| Full)?;
        }
    }
    let (mut legal, mut validator) = (true, Validator::<OpenCallSlots<8>>::new(Profile::OpenaiChat));
    history.messages().try_for_each(|message| validator.push(&message, &mut |_| legal = false))?;
    validator.finish(&mut |_| legal = false);
    if legal { Ok(()) } else { Err(Full) }
}

fn idle() -> ! {
    loop {
        cortex_m::asm::wfi();
    }
}

#[panic_handler]
fn panic(_info: &PanicInfo<'_>) -> ! {
    debug::exit(debug::EXIT_FAILURE);
    idle()
}
