//! The degradation as text for people.

use core::fmt::Write as _;

use super::{After, Degradation};
use crate::amount::counted;
use crate::commands::eval::rounds::{Row, Share};
use crate::commands::eval::text::{figure, left_out, over_the_budget};

impl Degradation {
    pub(in crate::commands::eval) fn to_text(&self, tokenizer: &str) -> String {
        let mut text = format!(
            "{}, compacted {} with turns between; tokens by {tokenizer}\n\
             Percent, means over the conversations, after 1, 2, .. compactions to the same goal. Identifiers, copied text: the share of\n\
             those that the model wrote next and that are still shown. Once: the same at the last place, where nothing was compacted\n\
             before. Left: tokens after the compaction, of the goal. Written: those of summaries and ledgers, of the goal. Rows in ():\n\
             floors and ceilings, which choose anew from all that was said.\n",
            counted(self.conversations, "conversation"),
            counted(self.rounds as u64, "time"),
        );
        if self.too_short > 0 {
            let short = counted(self.too_short, "conversation");
            let _ = writeln!(text, "{short} left out: too short for {} compactions", self.rounds);
        }
        for share in &self.shares {
            text += &share.to_text(self.rounds);
        }
        text
    }
}

impl Share<After> {
    fn to_text(&self, rounds: usize) -> String {
        let width = self.width(WIDTH_MIN);
        let mut text = String::new();
        let numbers: String = (1..=rounds).map(|round| format!("{round:>7}")).collect();
        for table in Table::ALL {
            let title = format!("keep {}: {}", self.keep, table.name);
            text +=
                &format!("\n{title:width$}{numbers}{:>7}\n", if table.once.is_some() { "once" } else { "" });
            text.truncate(text.trim_end().len());
            text.push('\n');
            for row in &self.rows {
                // Writing into a text does not fail.
                let _ = writeln!(text, "{:width$}{}", row.strategy, row.to_text(&table));
            }
        }
        text += &left_out(self.left_out, "conversation");
        text
    }
}

impl Row<After> {
    fn to_text(&self, table: &Table) -> String {
        let mut text: String =
            self.after.iter().map(|after| format!("{:>7}", figure((table.value)(after)))).collect();
        if let (Some(once), Some(last)) = (table.once, self.after.last()) {
            text += &format!("{:>7}", figure(once(last)));
        }
        if table.remarks {
            text += &over_the_budget(self.after.iter().map(|after| after.missed).sum());
        }
        text
    }
}

/// One metric of all rows.
struct Table {
    name: &'static str,
    value: fn(&After) -> Option<f64>,
    once: Option<fn(&After) -> Option<f64>>,
    /// Whether the table marks the contenders that have left more than the goal.
    remarks: bool,
}

impl Table {
    const ALL: [Self; 4] = [
        Self {
            name: "identifiers",
            value: |after| after.identifiers,
            once: Some(|after| after.identifiers_once),
            remarks: false,
        },
        Self {
            name: "copied text",
            value: |after| after.copied_text,
            once: Some(|after| after.copied_text_once),
            remarks: false,
        },
        Self { name: "left", value: |after| after.tokens_left, once: None, remarks: true },
        Self { name: "written", value: |after| after.written, once: None, remarks: false },
    ];
}

/// The longest title, `keep 12.345%: copied text`.
const WIDTH_MIN: usize = 25;
