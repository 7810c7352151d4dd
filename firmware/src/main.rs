//! An agent of a thousand turns on a Cortex-M4: its history has 16 KiB, all tables included, without a heap.
//!
//! Run it with `./check firmware`. After each turn all invariants are checked; the first violation ends the run with a
//! failure. One line at the end reports the costs.
#![no_std]
#![no_main]

mod agent;
mod checks;
mod measure;

use core::panic::PanicInfo;

use cortex_m_rt::entry;
use cortex_m_semihosting::{debug, hprintln};
use epitome_core::BoundedHistory;

use agent::{Agent, Page};
use measure::{Clock, Stack};

/// A history that fits 16 KiB: 96 headers and spans, the rows of tool results, and a verdict for each.
type History = BoundedHistory<{ agent::MESSAGES_MAX }, { agent::ARENA_BYTES }, { agent::RESULTS_MAX }>;

const _: () = assert!(History::ram_bytes() <= 16 * 1024, "the history outgrew its 16 KiB");

const TURNS: u32 = 1_000;
/// Maximum stack in bytes that a small device can provide.
const STACK_BYTES_MAX: usize = 6 * 1024;

/// The table of interrupts. No interrupt is used; without this table the runtime would reserve memory for 240.
#[unsafe(link_section = ".vector_table.interrupts")]
#[unsafe(no_mangle)]
pub static __INTERRUPTS: [u32; 1] = [0];

#[entry]
fn main() -> ! {
    static mut HISTORY: History = History::new();
    // In place of a sector of flash.
    static mut PAGE: Page = [0; History::snapshot_bytes_max()];
    let stack = Stack::paint();
    let Some(clock) = Clock::start() else { fail("the timer was taken twice") };
    let mut agent = Agent::new(HISTORY, PAGE, &clock);
    for turn in 0..TURNS {
        if let Err(why) = agent.turn(turn).and_then(|()| checks::all(&agent, turn)) {
            hprintln!("firmware: turn {}: {}", turn, why);
            fail("an invariant does not hold");
        }
    }
    if let Err(why) = agent.finish() {
        fail(why);
    }
    let costs = agent.costs();
    hprintln!(
        "firmware: {} turns, {} messages, {} compactions, {} results elided, {} B history ({} B arena); per append {} instructions \
         (worst {}), per plan {} (worst {}, {} per group), per compaction {} (worst {}), per ledger {} (worst {}); stack {} B, heap 0 B",
        TURNS,
        costs.append.count(),
        costs.compact.count(),
        agent.elided(),
        History::ram_bytes(),
        agent::ARENA_BYTES,
        costs.append.mean(),
        costs.append.worst(),
        costs.plan.mean(),
        costs.plan.worst(),
        costs.per_group_worst,
        costs.compact.mean(),
        costs.compact.worst(),
        costs.ledger.mean(),
        costs.ledger.worst(),
        stack.peak_bytes(),
    );
    if stack.peak_bytes() > STACK_BYTES_MAX {
        fail("the stack outgrew its 6 KiB");
    }
    debug::exit(debug::EXIT_SUCCESS);
    unreachable()
}

fn fail(why: &str) -> ! {
    hprintln!("firmware: {}", why);
    debug::exit(debug::EXIT_FAILURE);
    unreachable()
}

/// Never reached: QEMU has ended the program.
fn unreachable() -> ! {
    loop {
        cortex_m::asm::wfi();
    }
}

/// Prints the location without the message, because formatting code would be most of the image.
#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    let line = info.location().map_or(0, |at| at.line());
    hprintln!("firmware: panic at {}:{}", info.location().map_or("?", |at| at.file()), line);
    debug::exit(debug::EXIT_FAILURE);
    unreachable()
}
