//! Random session files.

use super::{call, hook, result, says, user};

/// A pseudo-random sequence (xorshift64), the same each time.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % end
    }
}

/// The lines of a file with branches, hooks and parallel calls.
pub(super) fn lines(dice: &mut Dice) -> Vec<String> {
    let (mut lines, mut names) = (Vec::new(), vec![String::new()]);
    for number in 0..2 + dice.below(6) {
        let own = format!("n{number}");
        let parent = match dice.below(4) {
            0 => names[dice.below(names.len())].clone(),
            _ => names[names.len() - 1].clone(),
        };
        let mut last = own.clone();
        match dice.below(5) {
            0 => lines.push(hook(&own, &parent).replace("\"\"", "null")),
            1 => {
                let calls = 1 + dice.below(3);
                for at in 0..calls {
                    let before = if at == 0 { parent.clone() } else { format!("{own}x{}", at - 1) };
                    lines.push(says(&format!("{own}x{at}"), &before, &own, &call(&format!("{own}c{at}"))));
                }
                // The call that is ready first has its result first.
                let first = dice.below(calls);
                for at in (0..calls).map(|at| (at + first) % calls) {
                    last = format!("{own}t{at}");
                    lines.push(result(&last, &format!("{own}x{at}"), &format!("{own}c{at}")));
                }
            }
            2 => lines.push(says(&own, &parent, &own, r#"{"type":"text","text":"said"}"#)),
            _ => lines.push(user(&own, &parent, &own)),
        }
        names.push(last);
    }
    lines
}
