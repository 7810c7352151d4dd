//! Redaction in the program: by options, of whole messages, with a report on standard error.

mod list;
mod message;

use core::fmt::Write as _;

use crate::amount::{counted, grouped};
use crate::args::RedactArgs;
use crate::failure::Result;
use crate::output;
use crate::redact::{Found, Redactor};

impl Redactor {
    /// The redactor for these options, if redaction is on.
    pub(crate) fn new(args: &RedactArgs) -> Result<Option<Self>> {
        match &args.redact_list {
            Some(path) => Ok(Some(Self::with_own(list::read(path)?))),
            None => Ok(args.redact.then(Self::default)),
        }
    }
}

impl Found {
    /// Reports on standard error the number of secrets, and the values that were not searched.
    pub(crate) fn tell(&self) {
        output::tell(self.to_text());
    }

    /// Lets an interrupt print the same report about all findings so far.
    pub(crate) fn tell_on_interrupt(&self) {
        output::set_last_words(self.to_text());
    }

    pub(crate) fn to_text(&self) -> String {
        let kinds: Vec<_> =
            self.redacted.iter().map(|(kind, count)| format!("{} {kind}", grouped(*count))).collect();
        let mut text = match kinds.is_empty() {
            true => "epitome: nothing was redacted\n".to_owned(),
            false => format!("epitome: redacted {}\n", kinds.join(", ")),
        };
        if self.not_searched > 0 {
            // Writing into a text does not fail.
            let _ = writeln!(
                text,
                "epitome: not searched: {} that {} encrypted, signed or base64 ({})",
                counted(self.not_searched, "value"),
                if self.not_searched == 1 { "is" } else { "are" },
                counted(self.not_searched_bytes, "byte")
            );
        }
        text
    }
}
