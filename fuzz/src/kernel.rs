//! Programs of calls to the C library of the kernel, and the invariants that hold after each of them.

mod border;
mod entry;
mod machine;
mod pages;
mod plans;
mod requests;
mod streams;
mod words;

use libfuzzer_sys::arbitrary::{Result, Unstructured};

use machine::Machine;

/// A history has room for 24 messages: a longer program finds no more than this one.
const CALLS_MAX: usize = 96;

/// Runs one input of the target.
///
/// # Panics
/// If the library violates its header.
pub fn run(bytes: &[u8]) {
    let mut program = Unstructured::new(bytes);
    let mut machine = Machine::new();
    for _ in 0..CALLS_MAX {
        if program.is_empty() || step(&mut machine, &mut program).is_err() {
            break;
        }
        machine.check();
    }
}

fn step(machine: &mut Machine, program: &mut Unstructured<'_>) -> Result<()> {
    match program.int_in_range(0..=17)? {
        0..=3 => entry::append(machine, program),
        4 | 16 | 17 => entry::turns(machine, program),
        5 => streams::begin(machine, program),
        6 => streams::extend(machine, program),
        7 => streams::end(machine, program),
        8 | 9 => plans::compact(machine, program),
        10 => plans::summarize(machine, program),
        11 => plans::budget(machine, program),
        12 => pages::carry_over(machine, program),
        13 => pages::damage(machine, program),
        14 => requests::write(machine, program),
        _ => match program.int_in_range(0..=3)? {
            0 => requests::read(machine, program),
            1 => requests::send(machine, program),
            2 => machine.init_wrongly(program),
            _ => machine.clear(program),
        },
    }
}
