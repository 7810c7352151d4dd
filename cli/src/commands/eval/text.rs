//! The measurement of the needs as text for people.

use core::fmt::Write as _;

use super::Eval;
use super::needs::{Lost, Needs, Row, Share};
use crate::amount::{counted, grouped};

impl Eval {
    pub(super) fn to_text(&self) -> String {
        let mut text = String::new();
        if let Some(needs) = &self.needs {
            text += &needs.to_text(&self.tokenizer);
        }
        if let Some(evidence) = &self.evidence {
            text += if text.is_empty() { "" } else { "\n" };
            text += &evidence.to_text(&self.tokenizer);
        }
        if let Some(canaries) = &self.canaries {
            text += &canaries.to_text(&self.tokenizer);
        }
        if let Some(degradation) = &self.degradation {
            text += &degradation.to_text(&self.tokenizer);
        }
        text.truncate(text.trim_end().len());
        text
    }
}

impl Needs {
    fn to_text(&self, tokenizer: &str) -> String {
        let mut text = format!(
            "{}, cut {}; {} before the cuts, by {tokenizer}\n\
             Percent, means over the cuts. Identifiers, copied text: the share of those that the model wrote next and that are\n\
             still shown. Left: tokens after the compaction. Stable: the unchanged beginning. Rows in (): floors and ceilings.\n",
            counted(self.conversations, "conversation"),
            counted(self.cuts, "time"),
            counted(self.tokens_before, "token"),
        );
        if let Some(price) = &self.price {
            text += &price.to_text();
        }
        for share in &self.shares {
            text += &share.to_text();
        }
        // The smallest budget has the first losses.
        if let Some(share) = self.shares.first() {
            text += &share.lost();
        }
        text
    }
}

impl Share {
    fn to_text(&self) -> String {
        let width = self.rows.iter().map(|row| row.strategy.chars().count()).max().unwrap_or(0);
        let is_priced = self.rows.iter().any(|row| row.price.is_some());
        let [price, passes] = if is_priced { ["   price", "  passes"] } else { [""; 2] };
        let mut text = format!(
            "\n{:<width$}{:>13}{price}{:>10}{:>13}{:>8}{:>8}{passes}\n",
            format!("keep {}", self.keep),
            "identifiers",
            "weighted",
            "copied text",
            "left",
            "stable"
        );
        for row in &self.rows {
            let [price, passes] = if is_priced { row.price() } else { Default::default() };
            // Writing into a text does not fail.
            let _ = writeln!(
                text,
                "{:<width$}{:>13}{price}{:>10}{:>13}{:>8.1}{:>8.1}{passes}{}",
                row.strategy,
                figure(row.identifiers),
                figure(row.identifiers_weighted),
                figure(row.copied_text),
                row.tokens_left,
                row.stable_prefix,
                over_the_budget(row.missed) + &illegal(row.illegal)
            );
        }
        text += &left_out(self.left_out, "cut");
        text
    }

    /// The worst examples of losses, by strategy.
    fn lost(&self) -> String {
        let mut text = String::new();
        for row in self.rows.iter().filter(|row| !row.lost.is_empty()) {
            let _ = writeln!(text, "\nlost by {} (keep {})", row.strategy, self.keep);
            row.lost.iter().for_each(|lost| text += &lost.to_text());
        }
        text
    }
}

impl Row {
    /// The price and the number of compactions, in columns.
    fn price(&self) -> [String; 2] {
        let price = self.price.as_ref();
        let compactions = price.map_or_else(|| "-".to_owned(), |price| grouped(price.compactions));
        [format!("{:>8}", figure(price.and_then(|price| price.percent))), format!("{compactions:>8}")]
    }
}

impl Lost {
    fn to_text(&self) -> String {
        let Self { identifier, conversation, stood_in, role, needed_at, cut } = self;
        format!(
            "  {identifier}: in message {stood_in} ({}), needed in message {needed_at}, cut at {cut} of {conversation}\n",
            role.as_str()
        )
    }
}

/// The line below a table about the cases that were left out.
pub(super) fn left_out(count: u64, case: &str) -> String {
    match count {
        0 => String::new(),
        count => {
            format!(
                "{} left out: what no strategy may touch has more than that share\n",
                counted(count, case)
            )
        }
    }
}

/// The remark after a row whose strategy has left more than the budget.
pub(super) fn over_the_budget(missed: u64) -> String {
    if missed == 0 { String::new() } else { format!("  {} over the budget", grouped(missed)) }
}

/// The remark after a row whose program has left messages that an API would refuse.
fn illegal(count: u64) -> String {
    if count == 0 { String::new() } else { format!("  {} illegal", grouped(count)) }
}

/// A share, or a dash if there is none.
pub(super) fn figure(percent: Option<f64>) -> String {
    percent.map_or_else(|| "-".to_owned(), |percent| format!("{percent:.1}"))
}
