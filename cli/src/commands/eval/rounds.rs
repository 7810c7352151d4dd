//! A conversation that is compacted repeatedly, with its own turns between.

use std::sync::Arc;

use epitome::core::TokenCounter;
use epitome::core::message::Role;
use serde::Serialize;

use super::contender::{Contender, Known};
use super::ongoing::Ongoing;
use super::prompt::{CountedMessage, Prompt};
use super::shown::Shown;
use crate::amount::Percent;
use crate::budget::Asked;
use crate::failure::Result;

/// All rows of a table by round, at one budget. Its fields are the program's JSON.
#[derive(Debug, Serialize)]
pub(super) struct Share<A> {
    pub(super) keep: String,
    /// Number of conversations that are not compacted, because their protected messages exceed the budget.
    pub(super) left_out: u64,
    pub(super) rows: Vec<Row<A>>,
}

#[derive(Debug, Serialize)]
pub(super) struct Row<A> {
    pub(super) strategy: String,
    /// A floor or a ceiling for the figures of strategies.
    baseline: bool,
    /// The figures after each number of compactions.
    pub(super) after: Vec<A>,
}

impl<A> Share<A> {
    /// The figures of each contender.
    pub(super) fn new(
        keep: Percent,
        left_out: u64,
        contenders: &[Contender<'_>],
        figures: impl IntoIterator<Item = Vec<A>>,
    ) -> Self {
        let rows = contenders.iter().zip(figures).map(|(contender, after)| Row {
            strategy: contender.name(),
            baseline: contender.is_baseline(),
            after,
        });
        Self { keep: keep.to_string(), left_out, rows: rows.collect() }
    }

    /// The width of the column of names, `least` or more.
    pub(super) fn width(&self, least: usize) -> usize {
        self.rows.iter().map(|row| row.strategy.chars().count()).max().unwrap_or(0).max(least)
    }
}

/// The number of messages before each compaction, ascending: the first is at the half of a conversation, the fifth at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rounds([usize; 5]);

/// The shares of the messages before each compaction, in eighths.
const EIGHTHS: [usize; 5] = [4, 5, 6, 7, 8];

impl Rounds {
    /// The rounds of a conversation; `None` if it is too short for five. A result stays with its call.
    pub(super) fn of(messages: &[CountedMessage]) -> Option<Self> {
        let ends = EIGHTHS.map(|eighths| {
            let from = messages.len() * eighths / 8;
            let rest = messages.iter().skip(from);
            from + rest.take_while(|counted| counted.message.role() == Role::Tool).count()
        });
        let ascend = ends.is_sorted_by(|one, next| one < next);
        (ascend && ends.first() > Some(&0)).then_some(Self(ends))
    }

    pub(super) const fn first(&self) -> usize {
        self.0[0]
    }

    pub(super) const fn third(&self) -> usize {
        self.0[2]
    }

    /// For each compaction, all messages before it.
    pub(super) fn prompts<'m>(&self, messages: &'m [CountedMessage]) -> Result<Vec<Prompt<'m>>> {
        self.0.iter().map(|end| Prompt::of(messages.iter().take(*end))).collect()
    }
}

/// The messages that a contender leaves after each compaction to the same goal. There is one compaction for each of
/// `prompts`, which are beginnings of `messages`. `needs` returns the needs that a ceiling looks for after a number of
/// messages.
pub(super) fn shown_by_round<'n, 'p>(
    contender: Contender<'_>,
    messages: &[CountedMessage],
    prompts: impl IntoIterator<Item = &'p Prompt<'p>>,
    asked: &Asked,
    needs: impl Fn(usize) -> Vec<&'n [u32]>,
    counter: &Arc<dyn TokenCounter + Send + Sync>,
) -> Result<Vec<Shown>> {
    let mut ongoing = Ongoing::new(contender, counter)?;
    let rounds = prompts.into_iter().map(|prompt| {
        let said = messages.get(..prompt.messages.len()).unwrap_or_default();
        ongoing.append_up_to(said)?;
        let known = Known { needs: &needs(said.len()), request: None };
        ongoing.compact(said, prompt, asked, known, counter)?;
        Ok(ongoing.shown())
    });
    rounds.collect()
}

#[cfg(test)]
mod tests {
    use epitome::message::Message;
    use epitome::tokens::counter_by_name;

    use super::*;
    use crate::strategy::Strategies;

    #[test]
    fn a_strategy_goes_on_with_what_it_has_left() {
        let counter: Arc<dyn TokenCounter + Send + Sync> = Arc::from(counter_by_name("estimate").unwrap());
        let turns = (0..40).flat_map(|turn| {
            [Message::user(format!("read src/file_{turn}.rs")), Message::assistant("It is read. ".repeat(60))]
        });
        let messages: Vec<_> = turns.map(|message| CountedMessage::of(message, &*counter)).collect();
        let prompts = Rounds::of(&messages).unwrap().prompts(&messages).unwrap();
        let asked = prompts[0].budget("30%".parse().unwrap()).unwrap();
        let ledger = Strategies::parse("agent").unwrap();
        let shown = |prompts: &[Prompt<'_>]| {
            let contender = Contender::Strategies(&ledger);
            shown_by_round(contender, &messages, prompts, &asked, |_| Vec::new(), &counter).unwrap()
        };
        let (rounds, once) = (shown(&prompts), shown(&prompts[4..]));
        let goal = asked.budget.goal().unwrap();
        assert!(rounds.len() == 5 && rounds.iter().all(|shown| shown.tokens <= goal), "{rounds:?}");
        // The ledger is merged from pass to pass, and differs from that of a single pass.
        assert!(rounds[4].new != once[0].new, "{rounds:?}");
    }

    #[test]
    fn rounds_end_behind_results_and_ascend() {
        let counter = counter_by_name("estimate").unwrap();
        let of = |roles: &str| {
            let messages = roles.chars().map(|role| match role {
                't' => Message::tool("c", "result"),
                _ => Message::user("question"),
            });
            Rounds::of(&messages.map(|message| CountedMessage::of(message, &*counter)).collect::<Vec<_>>())
        };
        assert_eq!(of("uuuuuuuuuuuuuuuu").map(|rounds| rounds.0), Some([8, 10, 12, 14, 16]));
        assert_eq!(of("uuuuuuuuttuuuuuu").map(|rounds| rounds.0), None);
        assert_eq!(of("uuuuuuuutuuuuuuu").map(|rounds| rounds.0), Some([9, 10, 12, 14, 16]));
        for short in ["", "u", "uuuuu", "uuuuuu"] {
            assert_eq!(of(short), None, "{short}");
        }
        assert_eq!(of("uuuuuuuu").map(|rounds| rounds.0), Some([4, 5, 6, 7, 8]));
    }
}
