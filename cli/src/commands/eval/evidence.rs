//! Evidence: the share of the messages with the answers to labelled questions that a compaction keeps.
//!
//! *Blind*: the conversation is compacted as it is. *Aware*: each question is the current request while the conversation is compacted.

mod case;
#[cfg(test)]
mod tests;
mod text;

use std::collections::HashSet;

use epitome::core::message::Role;
use serde::Serialize;

use super::Measure;
use super::contender::{Contender, Known};
use super::mean::Mean;
use super::prompt::Prompt;
use super::shown::Shown;
use super::stored::Stored;
use super::words::terms;
use crate::amount::Percent;
use crate::failure::Result;
use crate::progress::Progress;

pub(super) use case::QuestionedCase;
use case::{Question, Retention};

/// Measurements on conversations with labelled questions. Its fields are the program's JSON.
#[derive(Debug, Serialize)]
pub(super) struct Evidence {
    conversations: u64,
    questions: u64,
    /// Number of questions that are left out, because they have no evidence.
    unlabelled: u64,
    /// Number of labels that name no message.
    unknown_labels: u64,
    tokens_before: u64,
    shares: Vec<Share>,
}

/// All strategies at one budget.
#[derive(Debug, Serialize)]
struct Share {
    keep: String,
    /// Number of conversations that are not compacted, because their protected messages exceed the budget.
    left_out: u64,
    /// Number of questions for which the conversation is not compacted, for the same reason.
    left_out_aware: u64,
    rows: Vec<Row>,
}

/// One strategy at one budget: means over the questions, in percent.
#[derive(Debug, Serialize)]
struct Row {
    strategy: String,
    /// A floor or the ceiling for the figures of strategies.
    baseline: bool,
    blind: Retained,
    aware: Retained,
    /// Share of the hidden or shortened groups that `expand` brings back byte for byte.
    recovered: Option<f64>,
    /// Share of the evidence, blind and not shown, that is among the first ten hidden messages of a search for the
    /// question.
    found: Option<f64>,
    lost: Vec<Lost>,
}

#[derive(Debug, Serialize)]
struct Retained {
    /// Share of the messages that answer a question and are shown.
    evidence: Option<f64>,
    /// Share of the words of the answer in these messages that are shown; a rare word weighs more.
    answer_terms: Option<f64>,
    /// Tokens after the compaction: the mean over the compactions.
    tokens_left: Option<f64>,
    /// Number of compactions that left more tokens than the budget allows.
    missed: u64,
}

/// A message that answers a question and is no longer shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Lost {
    question: String,
    category: Option<String>,
    /// The id of the message.
    evidence: String,
    role: Role,
    conversation: String,
}

/// The name of the ceiling.
const ORACLE: &str = "(oracle: evidence)";

impl Evidence {
    /// Measures all conversations; `None` if there is no question.
    pub(super) fn of(cases: &[QuestionedCase], measure: &Measure) -> Result<Option<Self>> {
        let questions: usize = cases.iter().map(|case| case.questions.len()).sum();
        if questions == 0 {
            return Ok(None);
        }
        let contenders = Contender::all(measure, &[Contender::Search, Contender::Oracle(ORACLE)]);
        let mut tallies: Vec<ShareTally> =
            measure.keep.iter().map(|keep| ShareTally::new(*keep, contenders.len())).collect();
        let messages =
            cases.iter().map(|case| case.messages.len() as u64 * (1 + case.questions.len() as u64));
        let mut progress = Progress::of_messages("measuring", messages.sum());
        let mut tokens_before = 0;
        for case in cases {
            let prompt = case.blind()?;
            tokens_before += prompt.tokens();
            let mut stored = Stored::new(&measure.counter)?;
            stored.append_up_to(prompt.counted.iter().copied())?;
            for tally in &mut tallies {
                tally.add_blind(case, &prompt, &contenders, &mut stored, measure)?;
            }
            progress.advance(case.messages.len() as u64);
            for question in &case.questions {
                let prompt = case.aware(question)?;
                for tally in &mut tallies {
                    tally.add_aware(case, question, &prompt, &contenders, measure)?;
                }
                progress.advance(case.messages.len() as u64);
            }
        }
        Ok(Some(Self {
            conversations: cases.len() as u64,
            questions: questions as u64,
            unlabelled: cases.iter().map(|case| case.unlabelled).sum(),
            unknown_labels: cases.iter().map(|case| case.unknown_labels).sum(),
            tokens_before,
            shares: tallies.into_iter().map(|tally| tally.share(&contenders, measure.lost_max)).collect(),
        }))
    }
}

/// Running sums of a [`Share`].
struct ShareTally {
    keep: Percent,
    left_out: u64,
    left_out_aware: u64,
    rows: Vec<RowTally>,
}

#[derive(Default)]
struct RowTally {
    blind: Tally,
    aware: Tally,
    recovered: Mean,
    found: Mean,
    /// The lost messages, each with the number of messages that answer its question.
    lost: Vec<(usize, Lost)>,
}

#[derive(Default)]
struct Tally {
    evidence: Mean,
    answer_terms: Mean,
    left: Mean,
    missed: u64,
}

impl ShareTally {
    fn new(keep: Percent, rows: usize) -> Self {
        let rows = core::iter::repeat_with(RowTally::default).take(rows).collect();
        Self { keep, left_out: 0, left_out_aware: 0, rows }
    }

    /// Compacts a conversation as it is, once for all its questions.
    fn add_blind(
        &mut self,
        case: &QuestionedCase,
        prompt: &Prompt<'_>,
        contenders: &[Contender<'_>],
        stored: &mut Stored,
        measure: &Measure,
    ) -> Result<()> {
        if !prompt.can_be_met(self.keep) {
            self.left_out += 1;
            return Ok(());
        }
        let asked = prompt.budget(self.keep)?;
        let needs: Vec<&[u32]> = case.questions.iter().flat_map(Question::places).collect();
        for (row, contender) in self.rows.iter_mut().zip(contenders) {
            if let Contender::Strategies(strategies) = contender {
                row.recovered.add(stored.recovered(strategies, &asked)?);
            }
            let known = Known { needs: &needs, request: None };
            let Some(shown) = contender.shown(prompt, &asked, known, &*measure.counter)? else {
                row.blind.missed += u64::from(!matches!(contender, Contender::Search));
                continue;
            };
            row.blind.add_left(&shown, prompt, asked.budget.goal().unwrap_or_default());
            let new_terms = new_terms(&shown);
            for question in &case.questions {
                row.blind.add(case.retention(question, &shown, &new_terms));
                row.found.add(case.found(question, &shown));
                row.lost.extend(Lost::of(case, question, &shown));
            }
        }
        Ok(())
    }

    /// Compacts a conversation with one question as the current request.
    fn add_aware(
        &mut self,
        case: &QuestionedCase,
        question: &Question,
        prompt: &Prompt<'_>,
        contenders: &[Contender<'_>],
        measure: &Measure,
    ) -> Result<()> {
        if !prompt.can_be_met(self.keep) {
            self.left_out_aware += 1;
            return Ok(());
        }
        let asked = prompt.budget(self.keep)?;
        let needs: Vec<&[u32]> = question.places().collect();
        let known = Known { needs: &needs, request: Some((&case.texts, &question.text)) };
        for (row, contender) in self.rows.iter_mut().zip(contenders) {
            match contender.shown(prompt, &asked, known, &*measure.counter)? {
                Some(shown) => {
                    row.aware.add_left(&shown, prompt, asked.budget.goal().unwrap_or_default());
                    row.aware.add(case.retention(question, &shown, &new_terms(&shown)));
                }
                None => row.aware.missed += 1,
            }
        }
        Ok(())
    }

    fn share(self, contenders: &[Contender<'_>], lost_max: usize) -> Share {
        let rows = self.rows.into_iter().zip(contenders).map(|(tally, contender)| Row {
            strategy: contender.name(),
            baseline: contender.is_baseline(),
            blind: tally.blind.retained(),
            aware: tally.aware.retained(),
            recovered: tally.recovered.percent(),
            found: tally.found.percent(),
            lost: if contender.is_baseline() { Vec::new() } else { Lost::first(tally.lost, lost_max) },
        });
        Share {
            keep: self.keep.to_string(),
            left_out: self.left_out,
            left_out_aware: self.left_out_aware,
            rows: rows.collect(),
        }
    }
}

impl Tally {
    fn add(&mut self, retention: Retention) {
        self.evidence.add(retention.evidence);
        self.answer_terms.add(retention.answer_terms);
    }

    fn add_left(&mut self, shown: &Shown, prompt: &Prompt<'_>, goal: u64) {
        self.left.add(Some(shown.tokens as f64 / prompt.tokens().max(1) as f64));
        self.missed += u64::from(shown.tokens > goal);
    }

    fn retained(&self) -> Retained {
        Retained {
            evidence: self.evidence.percent(),
            answer_terms: self.answer_terms.percent(),
            tokens_left: self.left.percent(),
            missed: self.missed,
        }
    }
}

/// The words of the new texts in the view: of shortened messages and summaries.
fn new_terms(shown: &Shown) -> HashSet<String> {
    shown.new.iter().flat_map(|text| terms(text)).collect()
}

impl Question {
    /// For each piece of evidence, the messages that contain it.
    fn places(&self) -> impl Iterator<Item = &[u32]> {
        self.evidence.iter().map(|need| &*need.stands_in)
    }
}

impl Lost {
    /// The messages that answer a question and are not shown, each with the number of messages that answer the
    /// question.
    fn of(case: &QuestionedCase, question: &Question, shown: &Shown) -> Vec<(usize, Self)> {
        let lost = question.evidence.iter().filter(|need| !shown.has(need)).filter_map(|need| {
            let position = *need.stands_in.first()? as usize;
            let lost = Self {
                question: question.text.clone(),
                category: question.category.clone(),
                evidence: case.ids.get(position)?.clone(),
                role: case.messages.get(position)?.message.role(),
                conversation: case.place.clone(),
            };
            Some((question.evidence.len(), lost))
        });
        lost.collect()
    }

    /// The first `most` lost messages, each message once. Questions with the fewest answering messages come first.
    fn first(mut all: Vec<(usize, Self)>, most: usize) -> Vec<Self> {
        all.sort_by_key(|(messages, _)| *messages);
        let mut named = HashSet::new();
        let once = all.into_iter().map(|(_, one)| one);
        once.filter(|one| named.insert((one.conversation.clone(), one.evidence.clone()))).take(most).collect()
    }
}
