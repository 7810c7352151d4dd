//! Measurements as text for people.

use core::fmt::Write as _;

use super::Bench;
use super::kept::Kept;
use super::stages::Stage;
use crate::amount::{counted, grouped};
use crate::report::share;

impl Bench {
    pub(super) fn to_text(&self) -> String {
        let mut text = format!(
            "{} in {}, {} ({} by {}), {}{}\n",
            counted(self.messages, "message"),
            counted(self.turns, "turn"),
            counted(self.tokens, "token"),
            self.token_basis.as_str(),
            self.tokenizer,
            counted(self.bytes, "byte"),
            match self.conversations {
                1 => String::new(),
                many => format!("; {} conversations", grouped(many)),
            }
        );
        text += &self.stages();
        text += &self.kept();
        text
    }

    fn stages(&self) -> String {
        let width = self.stages.iter().map(|stage| stage.name().len()).max().unwrap_or(0);
        let mut text = format!(
            "\n{:<width$}{:>11}{:>12}{:>12}{:>12}{:>10}\n",
            "stage", "median", "messages/s", "turns/s", "tokens/s", "MB/s"
        );
        for stage in &self.stages {
            let rates = [stage.messages_per_second, stage.turns_per_second, stage.tokens_per_second];
            let [messages, turns, tokens] = rates.map(rate);
            // Writing into a text does not fail.
            let _ = writeln!(
                text,
                "{:<width$}{:>11}{messages:>12}{turns:>12}{tokens:>12}{:>10}",
                stage.name(),
                time(stage.nanoseconds),
                stage.bytes_per_second.map_or_else(|| "-".to_owned(), megabytes)
            );
        }
        text
    }

    fn kept(&self) -> String {
        let width = self.strategies.iter().map(|kept| kept.strategy.len()).max().unwrap_or(0);
        let mut text = format!(
            "\nto {}, of {} and {}\n{:<width$}{:>12}{:>7}{:>8}{:>11}{:>15}\n",
            counted(self.goal, "token"),
            counted(self.user_messages, "user message"),
            counted(self.tool_exchanges, "tool exchange"),
            "strategy",
            "tokens now",
            "share",
            "users",
            "exchanges",
            "stable prefix"
        );
        for kept in &self.strategies {
            let _ = writeln!(
                text,
                "{:<width$}{:>12}{:>7}{:>8}{:>11}{:>15}{}",
                kept.strategy,
                grouped(kept.tokens_after),
                share(kept.tokens_after, self.tokens),
                grouped(kept.user_messages_kept),
                grouped(kept.tool_exchanges_kept),
                grouped(kept.stable_prefix_tokens),
                kept.remarks(self.conversations)
            );
        }
        text.pop();
        text
    }
}

impl Stage {
    fn name(&self) -> String {
        match &self.strategy {
            Some(strategy) => format!("{}: {strategy}", self.stage),
            None => self.stage.to_owned(),
        }
    }
}

impl Kept {
    /// Further remarks, each with its number of conversations if there are many.
    fn remarks(&self, conversations: u64) -> String {
        let all = [
            (self.goal_missed, "goal missed"),
            (self.unchanged, "unchanged"),
            (self.infeasible, "infeasible: what is protected does not fit"),
        ];
        let said = all.into_iter().filter(|(times, _)| *times > 0).map(|(times, what)| match conversations {
            1 => format!("  {what}"),
            _ => format!("  {} {what}", grouped(times)),
        });
        said.collect()
    }
}

/// A time in a readable unit.
fn time(nanoseconds: u64) -> String {
    scaled(nanoseconds, &[(1, "ns"), (1_000, "us"), (1_000_000, "ms"), (1_000_000_000, "s")])
}

fn rate(a_second: u64) -> String {
    scaled(a_second, &[(1, ""), (1_000, "k"), (1_000_000, "M"), (1_000_000_000, "G")])
}

fn megabytes(bytes: u64) -> String {
    match bytes {
        0..10_000_000 => format!("{}.{}", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
        _ => grouped(bytes / 1_000_000),
    }
}

/// At least three digits, in the largest unit with a whole part that is not zero.
fn scaled(number: u64, units: &[(u64, &str)]) -> String {
    let (unit, name) =
        units.iter().rev().find(|(unit, _)| number >= *unit).or(units.first()).copied().unwrap_or((1, ""));
    let whole = number / unit;
    let digits = match whole {
        _ if unit == 1 => grouped(whole),
        0..10 => format!("{whole}.{:02}", number % unit * 100 / unit),
        10..100 => format!("{whole}.{}", number % unit * 10 / unit),
        _ => grouped(whole),
    };
    format!("{digits} {name}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_rates_have_three_digits_and_a_unit() {
        assert_eq!([0, 7, 999, 1_000].map(time), ["0 ns", "7 ns", "999 ns", "1.00 us"]);
        assert_eq!([12_345, 2_050_000_000].map(time), ["12.3 us", "2.05 s"]);
        assert_eq!([999, 43_210_000].map(rate), ["999", "43.2 M"]);
        assert_eq!(rate(5_678_000_000_000), "5,678 G");
        assert_eq!([0, 9_870_000, 1_234_000_000].map(megabytes), ["0.0", "9.8", "1,234"]);
    }
}
