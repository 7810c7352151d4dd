//! The recorded counts of the cases, and the compiler of the recorded program.

use core::error::Error;
use core::fmt;
use std::process::Command;

/// The recorded counts, to which new counts are compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Baseline {
    pub(crate) origin: Origin,
    /// Allowed increase of a case, in percent.
    pub(crate) tolerance_percent: u64,
    /// Name and instructions of each case.
    pub(crate) counts: Vec<(String, u64)>,
}

/// The conditions on which the counts depend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    /// Version of the compiler, as in the output of `rustc --version`.
    pub(crate) rustc: String,
    /// Target of the compiler, with the vector instructions in use.
    pub(crate) target: String,
}

/// The comparison of a count with its baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Same,
    Slower,
    Faster,
}

impl Baseline {
    /// Reads the text form of a baseline.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (mut rustc, mut target, mut tolerance_percent, mut counts) = (None, None, None, Vec::new());
        for (at, line) in
            (1..).zip(text.lines()).filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        {
            let wrong = || {
                format!(
                    "gate.txt, line {at}: expected a name and what belongs to it: `gate --update` writes it"
                )
            };
            let (name, value) = line.split_once(": ").ok_or_else(wrong)?;
            let number = || value.parse::<u64>().ok().filter(|number| *number > 0).ok_or_else(wrong);
            match name {
                "rustc" => rustc = Some(value.to_owned()),
                "target" => target = Some(value.to_owned()),
                "tolerance, percent" => tolerance_percent = Some(number()?),
                name => counts.push((name.to_owned(), number()?)),
            }
        }
        match (rustc, target, tolerance_percent) {
            (Some(rustc), Some(target), Some(tolerance_percent)) => {
                Ok(Self { origin: Origin { rustc, target }, tolerance_percent, counts })
            }
            _ => Err(
                "gate.txt: expected `rustc`, `target` and `tolerance, percent`: `gate --update` writes it"
                    .to_owned(),
            ),
        }
    }

    /// Number of instructions of the case with this name.
    pub(crate) fn instructions(&self, name: &str) -> Option<u64> {
        self.counts.iter().find(|(known, _)| known == name).map(|(_, instructions)| *instructions)
    }

    pub(crate) fn verdict(&self, now: u64, before: u64) -> Verdict {
        let (now, before) = (u128::from(now) * 100, u128::from(before));
        let tolerance = u128::from(self.tolerance_percent);
        match () {
            () if now > before * (100 + tolerance) => Verdict::Slower,
            () if now < before * 100u128.saturating_sub(tolerance) => Verdict::Faster,
            () => Verdict::Same,
        }
    }
}

impl fmt::Display for Baseline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "# Instructions of the cases of `./check gate`, by valgrind. Written by `gate --update`; docs/benchmarks/gate.md."
        )?;
        writeln!(f, "rustc: {}", self.origin.rustc)?;
        writeln!(f, "target: {}", self.origin.target)?;
        writeln!(f, "tolerance, percent: {}\n", self.tolerance_percent)?;
        self.counts.iter().try_for_each(|(name, count)| writeln!(f, "{name}: {count}"))
    }
}

impl Origin {
    /// Origin of the counts of this program: cargo runs the program with the compiler that built it.
    pub(crate) fn here() -> Result<Self, Box<dyn Error>> {
        let said = Command::new("rustc").arg("-vV").output()?;
        let said = String::from_utf8(said.stdout)?;
        let host = said.lines().find_map(|line| line.strip_prefix("host: "));
        let (Some(rustc), Some(target)) = (said.lines().next(), host) else {
            return Err("`rustc -vV` has not said what it is".into());
        };
        let target = format!("{target}{}", vectors());
        Ok(Self { rustc: rustc.trim_start_matches("rustc ").to_owned(), target })
    }

    /// The reason why counts of `other` are not comparable with these, or `None`.
    pub(crate) fn differs_from(&self, other: &Self) -> Option<String> {
        let differs = |what: &str, before: &str, now: &str| {
            (before != now).then(|| format!("the baseline is of {what} {before}, and this is {now}"))
        };
        differs("rustc", &self.rustc, &other.rustc).or_else(|| differs("target", &self.target, &other.target))
    }
}

/// Vector instructions that libraries choose at run time, if the choice changes the instructions of a step.
fn vectors() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        return " with AVX2";
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    fn baseline() -> Baseline {
        let origin = Origin { rustc: "1.95.0 (abc 2026-04-14)".to_owned(), target: "a-b-c".to_owned() };
        let counts = vec![("push".to_owned(), 1_000_000), ("read chat".to_owned(), 7)];
        Baseline { origin, tolerance_percent: 2, counts }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let baseline = baseline();
        assert_eq!(Baseline::parse(&baseline.to_string()).unwrap(), baseline);
        assert_eq!((baseline.instructions("read chat"), baseline.instructions("read")), (Some(7), None));
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        let whole = baseline().to_string();
        for (part, with, said) in [
            ("push: 1000000", "push 1000000", "line 6"),
            ("push: 1000000", "push: many", "line 6"),
            ("push: 1000000", "push: 0", "line 6"),
            ("rustc: ", "# ", "expected `rustc`"),
            ("tolerance, percent: 2", "", "expected `rustc`"),
        ] {
            assert!(whole.contains(part));
            let error = Baseline::parse(&whole.replace(part, with)).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn a_count_may_be_two_percent_over() {
        let verdict = |now| baseline().verdict(now, 1_000_000);
        assert_eq!([980_000, 1_000_000, 1_020_000].map(verdict), [Verdict::Same; 3]);
        assert_eq!([1_020_001, 1_050_000, u64::MAX].map(verdict), [Verdict::Slower; 3]);
        assert_eq!([979_999, 0].map(verdict), [Verdict::Faster; 2]);
    }

    #[test]
    fn another_compiler_or_machine_is_not_compared() {
        let own = baseline().origin;
        assert_eq!(own.differs_from(&own.clone()), None);
        let other = Origin { rustc: "1.96.0".to_owned(), ..own.clone() };
        assert_eq!(
            own.differs_from(&other).as_deref(),
            Some("the baseline is of rustc 1.95.0 (abc 2026-04-14), and this is 1.96.0")
        );
        let other = Origin { target: "d".to_owned(), ..own.clone() };
        assert!(own.differs_from(&other).unwrap().contains("target a-b-c, and this is d"));
    }
}
