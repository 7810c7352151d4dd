//! What a device needs of Epitome and nothing else, to see how much flash that takes: messages added and streamed,
//! truncation, compaction in place, and the rules of one provider. It prints nothing and checks nothing.
#![no_std]
#![no_main]

use core::hint::black_box;
use core::panic::PanicInfo;

use cortex_m_rt::entry;
use cortex_m_semihosting::debug;
use epitome_compactors::Truncation;
use epitome_core::message::{Role, SimpleMessage, ToolCallView};
use epitome_core::{
    BoundedHistory, Budget, ClassEstimator, Full, OpenCallSlots, Outcome, Pass, Profile, Validator,
};

type History = BoundedHistory<96, 10_928>;

#[entry]
fn main() -> ! {
    static mut HISTORY: History = History::new();
    let done = (0..black_box(20)).try_for_each(|_| turn(HISTORY));
    debug::exit(if done.is_ok() { debug::EXIT_SUCCESS } else { debug::EXIT_FAILURE });
    idle()
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
    let budget = Budget::builder().window(400).trigger(200).goal(100).build().map_err(|_| Full)?;
    if budget.is_due(history.tokens()) {
        let outcome = history.plan(&budget, Pass::Proactive, &Truncation::new());
        if matches!(outcome, Ok(Outcome::Planned(_))) {
            history.compact().map_err(|_| Full)?;
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
