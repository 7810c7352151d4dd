//! A conversation of ten thousand turns that stays within a limit all the time.

use core::hint::black_box;
use core::time::Duration;

use super::clock::Instant;
use super::contender::{Contender, Keeping, Unit};
use super::said::Said;

/// Figures of one contender's loop.
#[derive(Debug, Clone)]
pub struct Looped {
    /// The library.
    pub name: String,
    /// The call.
    pub call: String,
    /// Unit of its limit.
    pub unit: Unit,
    /// Treatment of the history.
    pub keeping: Keeping,
    /// Number of turns within the time limit.
    pub turns: usize,
    /// Total time of all turns.
    pub time: Duration,
    /// Numbers of turns, each with the time up to that turn.
    pub course: Vec<(usize, Duration)>,
    /// Total number of text bytes in the requests of all turns.
    pub bytes: u64,
}

/// Runs one contender through the turns, for at most `most`.
#[must_use]
pub fn run(
    contender: &dyn Contender,
    keeping: Keeping,
    turns: &[Vec<Said>],
    limit: u64,
    most: Duration,
) -> Option<Looped> {
    let mut looping = contender.begin(limit, keeping)?;
    let (mut time, mut bytes, mut course, mut made) = (Duration::ZERO, 0, vec![(0, Duration::ZERO)], 0);
    // The instructions belong to the first turn.
    let (first, rest) = turns.split_first()?;
    for (at, turn) in rest.iter().enumerate() {
        match at {
            0 => looping.hear(&[first.as_slice(), turn].concat()),
            _ => looping.hear(turn),
        }
        let start = Instant::now();
        bytes += black_box(looping.go_on()) as u64;
        time += start.elapsed();
        made = at + 1;
        if made.is_multiple_of((rest.len() / POINTS).max(1)) || made == rest.len() {
            course.push((made, time));
        }
        if time > most {
            break;
        }
    }
    let (name, call, unit) = (contender.name(), contender.call(), contender.unit());
    Some(Looped { name, call, unit, keeping, turns: made, time, course, bytes })
}

/// Number of points of a course that are kept.
const POINTS: usize = 50;
