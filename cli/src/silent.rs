//! Messages without any readable content: the program reports them and goes on.

use epitome::core::message::{MessageView, Role};

use crate::amount::counted;
use crate::output;

/// The messages of one conversation that have no parts, and their number.
#[derive(Debug, Default)]
pub(crate) struct Silent {
    first: Vec<(u64, Role)>,
    count: usize,
}

impl Silent {
    /// Checks the message with this number.
    pub(crate) fn look(&mut self, at: u64, message: &(impl MessageView + ?Sized)) {
        let mut says_nothing = true;
        message.for_each_part(&mut |_| says_nothing = false);
        if says_nothing {
            self.count += 1;
            if self.first.len() < NAMED_MAX {
                self.first.push((at, message.role()));
            }
        }
    }

    /// Reports these messages on standard error, if there are any. `place` is the place of the conversation in its
    /// file, or empty.
    pub(crate) fn tell(&self, place: &str) {
        let words = "no content that can be read";
        let at = if place.is_empty() { "" } else { " at " };
        let said = match self.first.as_slice() {
            [] => return,
            [(at, role)] => format!("message {at} ({}) has {words}", role.as_str()),
            many => {
                let numbers: Vec<_> = many.iter().map(|(at, _)| at.to_string()).collect();
                let more = match self.count - many.len() {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                let count = counted(self.count as u64, "message");
                format!("{count} have {words}: {}{more}", numbers.join(", "))
            }
        };
        output::tell(format!("warning: {said}{at}{place}; messages are counted from 0"));
    }
}

/// Maximum number of messages that are named, so that the report stays one line.
const NAMED_MAX: usize = 5;
