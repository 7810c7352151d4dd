//! The stages of a compaction, one after the other.

use core::hint::black_box;

use epitome::core::message::{MessageView as _, PartView};
use epitome::core::{
    Basis, GroupKind, OpenCallTree, PlanError, Planner, Profile, TokenCounter, Tokens, Validator,
};
use epitome::message::Message;
use epitome::tokens::measure_with_parts;
use epitome::wire::WireError;
use epitome::wire::document::Piece;
use serde::Serialize;

use super::Source;
use super::clock::{Rounds, Took};
use crate::args::BudgetArgs;
use crate::budget::Asked;
use crate::failure::{Failure, Result, code};
use crate::report::sum;
use crate::scan::{self, Index, Scan};
use crate::strategy::Strategies;
use crate::transcript::{Input, Transcript};

/// The time of one stage, and its rates.
#[derive(Debug, Serialize)]
pub(super) struct Stage {
    pub(super) stage: &'static str,
    /// The strategy of a planning stage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) strategy: Option<String>,
    pub(super) nanoseconds: u64,
    pub(super) rounds: u32,
    pub(super) messages_per_second: u64,
    pub(super) turns_per_second: u64,
    pub(super) tokens_per_second: u64,
    /// Bytes of the whole text per second, if the stage reads text.
    pub(super) bytes_per_second: Option<u64>,
}

/// One conversation, read and counted.
pub(super) struct Work {
    scan: Scan,
    asked: Asked,
    messages: Vec<Message>,
    /// The size of each message, and the sizes of its parts.
    sizes: Vec<(Tokens, Vec<Tokens>)>,
}

/// The input of all stages.
#[derive(Clone, Copy)]
pub(super) struct All<'a> {
    pub(super) source: &'a Source,
    pub(super) input: &'a Input,
    pub(super) works: &'a [Work],
    pub(super) counter: &'a dyn TokenCounter,
    pub(super) profile: Profile,
}

impl Work {
    pub(super) fn of(
        transcript: &mut Transcript<'_>,
        counter: &dyn TokenCounter,
        budget: &BudgetArgs,
    ) -> Result<Self> {
        let (scan, asked) = scan::whole(transcript, counter, &[], |own| Asked::new(budget, own))?;
        let mut messages = Vec::with_capacity(transcript.len());
        transcript.for_each(|message| {
            let message = message.to_message();
            messages.push(message.map_err(|error: WireError| Failure::input(error.to_string()))?);
            Ok(())
        })?;
        let sizes = messages.iter().map(|message| {
            let (amount, parts) = measure_with_parts(message, counter);
            (amount.tokens, parts)
        });
        Ok(Self { scan, asked, sizes: sizes.collect(), messages })
    }

    pub(super) fn messages(&self) -> u64 {
        self.messages.len() as u64
    }

    pub(super) fn turns(&self) -> u64 {
        self.scan.index.view().turn().0.into()
    }

    pub(super) fn tokens(&self) -> u64 {
        sum(&self.scan.sizes)
    }

    pub(super) fn basis(&self) -> Basis {
        self.scan.basis
    }

    pub(super) fn goal(&self) -> u64 {
        self.asked.budget.goal().unwrap_or_default()
    }

    /// Number of groups of this kind.
    pub(super) fn groups(&self, kind: GroupKind) -> u64 {
        self.scan.index.view().groups().filter(|group| group.kind() == kind).count() as u64
    }

    fn group(&self) -> Result<Index> {
        let mut index = Index::with_parts(Vec::new(), OpenCallTree::new(), Vec::new());
        for (message, (tokens, parts)) in self.messages.iter().zip(&self.sizes) {
            let size =
                |ordinal: u32, _: PartView<'_>| parts.get(ordinal as usize).copied().unwrap_or(Tokens::ZERO);
            scan::placed(index.push_with_parts(message, *tokens, size))?;
        }
        Ok(index)
    }

    fn count(&self, counter: &dyn TokenCounter) -> u64 {
        self.messages.iter().map(|message| measure_with_parts(message, counter).0.tokens.as_u64()).sum()
    }

    fn validate(&self, profile: Profile) -> Result<u64> {
        let mut validator = Validator::<OpenCallTree>::new(profile);
        let mut violations = 0_u64;
        for message in &self.messages {
            let pushed = validator.push(message, &mut |_| violations += 1);
            pushed.map_err(|full| Failure::new(code::IO, full.to_string()))?;
        }
        validator.finish(&mut |_| violations += 1);
        Ok(violations)
    }

    /// Plans with a planner that has allocated its memory already.
    fn plan(&self, strategies: &Strategies, planner: &mut Planner) -> Result<()> {
        let (budget, pass) = (self.asked.budget, self.asked.pass());
        let planned = strategies
            .with(|strategy| planner.plan(self.scan.index.view(), &budget, pass, strategy).map(|_| ()));
        match planned {
            // Protected messages that do not fit are a valid result of a plan.
            Ok(()) | Err(PlanError::Infeasible(_)) => Ok(()),
            Err(error) => Err(Failure::plan(&error, &budget)),
        }
    }

    /// Makes `strategies` anew for this conversation.
    fn strategies(&self, strategies: &Strategies) -> Result<Strategies> {
        strategies.about(|texts| {
            (0..).zip(&self.messages).for_each(|(at, message)| texts.look_through(at, message));
            Ok(())
        })
    }
}

impl All<'_> {
    /// Measures all stages. `transcripts` are those of the input; the last stage writes them unchanged.
    pub(super) fn measure(
        self,
        transcripts: &mut [Transcript<'_>],
        strategies: &[Strategies],
        rounds: Rounds,
    ) -> Result<Vec<Stage>> {
        let each =
            |work: &dyn Fn(&Work) -> Result<()>| rounds.measure(|| self.works.iter().try_for_each(work));
        let mut stages = vec![
            self.stage("read", None, rounds.measure(|| self.read())?)?,
            self.stage("group", None, each(&|work| work.group().map(|index| drop(black_box(index))))?)?,
            self.stage(
                "count",
                None,
                each(&|work| {
                    black_box(work.count(self.counter));
                    Ok(())
                })?,
            )?,
        ];
        for strategies in strategies {
            let own =
                self.works.iter().map(|work| work.strategies(strategies)).collect::<Result<Vec<_>>>()?;
            let mut planner = Planner::new();
            let took = rounds.measure(|| {
                let mut all = self.works.iter().zip(&own);
                all.try_for_each(|(work, strategies)| work.plan(strategies, &mut planner))
            })?;
            stages.push(self.stage("plan", Some(strategies.names().join(" | ")), took)?);
        }
        let project =
            |work: &Work| -> u64 { work.scan.index.view().projection().flatten().map(u64::from).sum() };
        stages.push(self.stage(
            "project",
            None,
            each(&|work| {
                black_box(project(work));
                Ok(())
            })?,
        )?);
        stages.push(self.stage("validate", None, each(&|work| work.validate(self.profile).map(|_| ()))?)?);
        stages.push(self.stage("write", None, self.write(transcripts, rounds)?)?);
        Ok(stages)
    }

    /// Opens the text and reads every message.
    fn read(self) -> Result<()> {
        let input = self.source.open()?;
        self.source.transcripts(&input)?.iter_mut().try_for_each(|transcript| {
            transcript.for_each(|message| {
                black_box(message.role());
                Ok(())
            })
        })
    }

    /// Writes all messages into memory, in the way in which a compacted transcript is written.
    fn write(self, transcripts: &mut [Transcript<'_>], rounds: Rounds) -> Result<Took> {
        let pieces = |transcript: &Transcript<'_>| (0..transcript.len()).map(Piece::Original).collect();
        let pieces: Vec<Vec<_>> = transcripts.iter().map(pieces).collect();
        let mut out = Vec::new();
        rounds.measure(|| {
            out.clear();
            let written = self.input.splice(transcripts, &mut out, |at, transcript, out| {
                transcript.write(pieces.get(at).map(Vec::as_slice).unwrap_or_default(), out)
            });
            written.map_err(|error| Failure::io(self.input.path(), &error))
        })
    }

    fn stage(self, stage: &'static str, strategy: Option<String>, took: Took) -> Result<Stage> {
        let Took { nanoseconds, rounds } = took;
        let sum = |of: fn(&Work) -> u64| self.works.iter().map(of).sum::<u64>();
        let a_second = |number: u64| per_second(number, nanoseconds);
        Ok(Stage {
            stage,
            strategy,
            nanoseconds,
            rounds,
            messages_per_second: a_second(sum(Work::messages)),
            turns_per_second: a_second(sum(Work::turns)),
            tokens_per_second: a_second(sum(Work::tokens)),
            bytes_per_second: match SEE_TEXT.contains(&stage) {
                true => Some(a_second(self.source.bytes()?)),
                false => None,
            },
        })
    }
}

/// The stages whose cost depends on bytes; the other stages use sizes that were counted before.
const SEE_TEXT: [&str; 3] = ["read", "count", "write"];

/// Number of things per second, if `number` things take `nanoseconds`.
fn per_second(number: u64, nanoseconds: u64) -> u64 {
    let rate = u128::from(number) * 1_000_000_000 / u128::from(nanoseconds.max(1));
    u64::try_from(rate).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_of_a_second() {
        assert_eq!(per_second(3, 1_500_000_000), 2);
        assert_eq!(per_second(74, 37), 2_000_000_000);
        assert_eq!(per_second(u64::MAX, 0), u64::MAX);
    }
}
