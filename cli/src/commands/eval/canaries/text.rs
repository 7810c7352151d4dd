//! The fates of the canaries as text for people.

use core::fmt::Write as _;

use super::{Canaries, Survival};
use crate::amount::counted;
use crate::commands::eval::rounds::Share;
use crate::commands::eval::text::{figure, left_out, over_the_budget};

impl Canaries {
    pub(in crate::commands::eval) fn to_text(&self, tokenizer: &str) -> String {
        let mut text = format!(
            "{}, {} planted; tokens by {tokenizer}\n\
             Percent, means over the sentences: those that are valid and shown, by kind, after one compaction at the half of the\n\
             conversation and after five with its turns between. Stale: replaced by a newer sentence, and shown without it. Left: of\n\
             all tokens so far. Rows in (): floors and a ceiling.\n",
            counted(self.conversations, "conversation"),
            counted(self.planted, "sentence"),
        );
        if self.too_short > 0 {
            let short = counted(self.too_short, "conversation");
            let _ = writeln!(text, "{short} left out: too short for five compactions");
        }
        for share in &self.shares {
            text += &share.to_text();
        }
        text
    }
}

impl Share<Survival> {
    fn to_text(&self) -> String {
        let keep = format!("keep {}", self.keep);
        let width = self.width(keep.len());
        let mut text = String::new();
        for (at, compactions) in super::AFTER.into_iter().enumerate() {
            let after = counted(compactions as u64, "compaction");
            text += &format!(
                "\n{:width$}  after {after}\n{keep:width$}{:>7}{:>12}{:>6}{:>6}{:>12}{:>7}{:>7}{:>7}\n",
                "", "safety", "constraint", "fact", "goal", "preference", "all", "stale", "left"
            );
            for row in &self.rows {
                let survival = row.after.get(at).map_or_else(String::new, Survival::to_text);
                // Writing into a text does not fail.
                let _ = writeln!(text, "{:width$}{survival}", row.strategy);
            }
        }
        text += &left_out(self.left_out, "conversation");
        text
    }
}

impl Survival {
    fn to_text(&self) -> String {
        let widths = [7, 12, 6, 6, 12];
        let kinds = self.by_kind.values().zip(widths);
        let kinds: String = kinds.map(|(percent, width)| format!("{:>width$}", figure(*percent))).collect();
        let [all, stale, left] = [self.all, self.stale, self.tokens_left].map(figure);
        let remarks = over_the_budget(self.missed);
        format!("{kinds}{all:>7}{stale:>7}{left:>7}{remarks}")
    }
}
