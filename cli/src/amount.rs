//! Amounts on the command line: `8000`, `8_000`, `50%`, `30d`.

use core::fmt;
use core::str::FromStr;

/// An amount of tokens, or a share of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Amount {
    Tokens(u64),
    Percent(Percent),
}

/// A share in whole percent, at most all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Percent(u8);

/// For how long, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Age(pub(crate) u64);

impl Amount {
    /// The tokens it is, as a share of `whole`.
    pub(crate) const fn of(self, whole: u64) -> u64 {
        match self {
            Self::Tokens(tokens) => tokens,
            Self::Percent(percent) => percent.of(whole),
        }
    }
}

impl Percent {
    /// This share of `whole`, rounded down.
    pub(crate) const fn of(self, whole: u64) -> u64 {
        let share = whole as u128 * self.0 as u128 / 100;
        share as u64
    }
}

impl FromStr for Amount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.ends_with('%') {
            true => text.parse().map(Self::Percent),
            false => tokens(text).map(Self::Tokens).map_err(|error| error + ", or a share like 50%"),
        }
    }
}

impl FromStr for Percent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number =
            text.strip_suffix('%').and_then(|digits| digits.parse().ok()).filter(|percent| *percent <= 100);
        number
            .map(Self)
            .ok_or_else(|| "expected a share in whole percent, 0% to 100%, for example 50%".to_owned())
    }
}

impl FromStr for Age {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let units = [("m", 60), ("h", 60 * 60), ("d", 24 * 60 * 60), ("w", 7 * 24 * 60 * 60)];
        let mut known = units.into_iter().filter_map(|(unit, seconds)| {
            let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
            number.checked_mul(seconds * 1_000)
        });
        let expected = "expected minutes, hours, days or weeks, for example 90m, 12h, 30d or 8w";
        known.next().map(Self).ok_or_else(|| expected.to_owned())
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0)
    }
}

/// A number of tokens; `_` may group its digits.
pub(crate) fn tokens(text: &str) -> Result<u64, String> {
    let digits = text.replace('_', "");
    digits.parse().map_err(|_| "expected a number of tokens, for example 8000".to_owned())
}

/// A number with its digits in groups of three.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number of things: "1 turn", "1,234 turns".
pub(crate) fn counted(number: u64, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", grouped(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_read_as_people_write_them() {
        assert_eq!("128_000".parse(), Ok(Amount::Tokens(128_000)));
        assert_eq!("50%".parse::<Amount>().map(|share| share.of(7)), Ok(3));
        for wrong in ["", "%", "-1", "101%", "5.5%", "8k", "1e3"] {
            assert!(wrong.parse::<Amount>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn ages_have_a_unit() {
        assert_eq!(
            ["2m", "3h", "1d", "1w"].map(|text| text.parse::<Age>().unwrap().0 / 60_000),
            [2, 180, 1440, 10_080]
        );
        for wrong in ["", "d", "5", "-1d", "1.5h", "1y", "1 d", "18446744073709551615m"] {
            assert!(wrong.parse::<Age>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn numbers_are_grouped_for_people() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
