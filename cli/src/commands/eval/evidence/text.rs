//! The evidence as text for people.

use core::fmt::Write as _;

use super::{Evidence, Lost, Retained, Share};
use crate::amount::counted;
use crate::commands::eval::text::{figure, left_out, over_the_budget};
use crate::visible::line;

impl Evidence {
    pub(in crate::commands::eval) fn to_text(&self, tokenizer: &str) -> String {
        let mut text = format!(
            "{}, {} with labelled evidence; {}, by {tokenizer}\n\
             Percent, means over the questions. Evidence: the share of the labelled messages that is shown. Terms: of the words of\n\
             the answer that stand in them, the share that is shown. Blind: the question is not known. Aware: it is the current\n\
             request. Left: tokens after the compaction. Log: hidden groups that `expand` brings back. Found: of the\n\
             evidence that is not shown, blind, that among the ten best of a search for the question. Rows in (): floors and a ceiling.\n",
            counted(self.conversations, "conversation"),
            counted(self.questions, "question"),
            counted(self.tokens_before, "token"),
        );
        if self.unlabelled > 0 {
            let questions = counted(self.unlabelled, "question");
            let _ = writeln!(text, "{questions} left out: no message is labelled as evidence");
        }
        if self.unknown_labels > 0 {
            let labels = counted(self.unknown_labels, "label");
            let _ = writeln!(text, "{labels} passed over: no message has that id");
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
        let keep = format!("keep {}", self.keep);
        let width =
            self.rows.iter().map(|row| row.strategy.chars().count()).max().unwrap_or(0).max(keep.len());
        let mut text = format!("\n{:width$}{:>9}{:>24}\n", "", "blind", "aware");
        text += &format!(
            "{keep:width$}{:>9} {:>6} {:>6} {:>10} {:>6} {:>6} {:>6} {:>6}\n",
            "evidence", "terms", "left", "evidence", "terms", "left", "log", "found"
        );
        for row in &self.rows {
            // Writing into a text does not fail.
            let _ = writeln!(
                text,
                "{:width$}{}  {} {:>6} {:>6}{}",
                row.strategy,
                row.blind.to_text(),
                row.aware.to_text(),
                figure(row.recovered),
                figure(row.found),
                over_the_budget(row.blind.missed + row.aware.missed)
            );
        }
        text += &left_out(self.left_out, "conversation");
        text += &left_out(self.left_out_aware, "aware question");
        text
    }

    /// Examples of losses, by strategy.
    fn lost(&self) -> String {
        let mut text = String::new();
        for row in self.rows.iter().filter(|row| !row.lost.is_empty()) {
            let _ = writeln!(text, "\nlost by {} (keep {}, blind)", row.strategy, self.keep);
            row.lost.iter().for_each(|lost| text += &lost.to_text());
        }
        text
    }
}

impl Retained {
    fn to_text(&self) -> String {
        format!(
            "{:>9} {:>6} {:>6}",
            figure(self.evidence),
            figure(self.answer_terms),
            figure(self.tokens_left)
        )
    }
}

impl Lost {
    fn to_text(&self) -> String {
        let Self { question, evidence, role, conversation, category } = self;
        let category =
            category.as_ref().map_or_else(String::new, |category| format!(" (category {category})"));
        let question = clipped(question);
        let text =
            format!("  {question}{category}: in message {evidence} ({}) of {conversation}", role.as_str());
        // Questions and ids may contain line breaks.
        line(&text) + "\n"
    }
}

/// The beginning of a question.
fn clipped(text: &str) -> String {
    match text.char_indices().nth(QUESTION_MAX) {
        Some((end, _)) => format!("{}..", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Number of characters of a question that a line shows.
const QUESTION_MAX: usize = 100;
