//! Measures instructions and the depth of the stack.

use cortex_m::peripheral::SYST;
use cortex_m::peripheral::syst::SystClkSource;

/// Counts instructions: with `-icount` each instruction takes the same time in QEMU, and the timer measures that time.
pub struct Clock {
    /// Number of instructions in a tick.
    instructions: u32,
}

impl Clock {
    pub fn start() -> Option<Self> {
        let mut timer = cortex_m::Peripherals::take()?.SYST;
        timer.set_clock_source(SystClkSource::Core);
        timer.set_reload(TICKS - 1);
        timer.clear_current();
        timer.enable_counter();
        // A loop of known length gives the number of instructions in a tick: `delay` runs two instructions for each
        // requested cycle.
        let began = SYST::get_current();
        cortex_m::asm::delay(CALIBRATION);
        let ticks = since(began).max(1);
        Some(Self { instructions: (2 * CALIBRATION + ticks / 2) / ticks })
    }

    /// Runs `work`. Returns its result and the number of its instructions, exact to one tick.
    pub fn measure<T>(&self, work: impl FnOnce() -> T) -> (T, u32) {
        let began = SYST::get_current();
        let done = work();
        (done, since(began).saturating_mul(self.instructions))
    }
}

/// Ticks since `began`; the timer counts down.
fn since(began: u32) -> u32 {
    began.wrapping_sub(SYST::get_current()) & (TICKS - 1)
}

/// The timer has 24 bits.
const TICKS: u32 = 1 << 24;
const CALIBRATION: u32 = 1_000_000;

/// A sum of costs.
#[derive(Default)]
pub struct Cost {
    count: u32,
    sum: u32,
    worst: u32,
}

impl Cost {
    pub fn add(&mut self, instructions: u32) {
        self.count += 1;
        self.sum = self.sum.saturating_add(instructions);
        self.worst = self.worst.max(instructions);
    }

    pub fn count(&self) -> u32 {
        self.count
    }

    pub fn mean(&self) -> u32 {
        self.sum / self.count.max(1)
    }

    pub fn worst(&self) -> u32 {
        self.worst
    }
}

/// Measures the peak of the stack: words that the stack never reached still have the paint value.
pub struct Stack;

unsafe extern "C" {
    /// The end of the variables, and so the lowest address that the stack may reach.
    static mut __sheap: u32;
    static mut _stack_start: u32;
}

const PAINT: u32 = 0xC0DE_CAFE;
/// Number of words of stack that `paint` itself may use.
const SPARED: usize = 32;

impl Stack {
    #[inline(always)]
    pub fn paint() -> Self {
        let mut at = (&raw mut __sheap).cast::<u32>();
        let end = (cortex_m::register::msp::read() as *mut u32).wrapping_sub(SPARED);
        while at < end {
            // SAFETY: between the variables and the stack nothing lives; `at` is aligned and below the stack pointer.
            unsafe { at.write_volatile(PAINT) };
            at = at.wrapping_add(1);
        }
        Self
    }

    pub fn peak_bytes(&self) -> usize {
        let mut at = (&raw mut __sheap).cast::<u32>();
        let top = (&raw mut _stack_start).cast::<u32>();
        // SAFETY: inside RAM, aligned, and read only.
        while at < top && unsafe { at.read_volatile() } == PAINT {
            at = at.wrapping_add(1);
        }
        top as usize - at as usize
    }
}
