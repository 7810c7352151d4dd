//! Amounts on the command line: `8000`, `8_000`, `50%`, `30d`.

use core::fmt;
use core::str::FromStr;

/// A number of tokens, or a share of a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Amount {
    Tokens(u64),
    Percent(Percent),
}

/// A share in thousandths of a percent: at most 100 %.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Percent(u32);

/// A duration in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Age(pub(crate) u64);

impl Amount {
    /// The number of tokens: a share is taken of `whole`.
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
        let share = whole as u128 * self.0 as u128 / (100 * PERCENT) as u128;
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
        let expected = || {
            "expected a share with at most three decimals, 0% to 100%, for example 50% or 10.5%".to_owned()
        };
        let number = text.strip_suffix('%').ok_or_else(expected)?;
        let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
        let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(whole) || !is_number(decimals) || decimals.len() > 3 {
            return Err(expected());
        }
        let thousandths = |digits: &str| digits.parse::<u32>().map_err(|_| expected());
        let whole = thousandths(whole)?.checked_mul(PERCENT).ok_or_else(expected)?;
        let share = whole.saturating_add(thousandths(&format!("{decimals:0<3}"))?);
        if share > 100 * PERCENT { Err(expected()) } else { Ok(Self(share)) }
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
        let (whole, decimals) = (self.0 / PERCENT, format!("{:03}", self.0 % PERCENT));
        let point = if decimals == "000" { "" } else { "." };
        write!(f, "{whole}{point}{}%", decimals.trim_end_matches('0'))
    }
}

/// Number of thousandths in one percent.
const PERCENT: u32 = 1_000;

/// A share in percent; the percent sign is optional.
pub(crate) fn share(text: &str) -> Result<Percent, String> {
    let share = text.trim();
    if share.ends_with('%') { share.parse() } else { format!("{share}%").parse() }
}

/// A number of tokens; `_` may group its digits.
pub(crate) fn tokens(text: &str) -> Result<u64, String> {
    let digits = text.replace('_', "");
    digits.parse().map_err(|_| "expected a number of tokens, for example 8000".to_owned())
}

/// A number from 1, of a type that cannot be 0.
pub(crate) fn positive<N: FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| "expected a whole number from 1".to_owned())
}

/// A number with a comma between groups of three digits.
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
        for (text, share) in
            [("10.5%", 105), ("0.1%", 1), ("100%", 1_000), ("100.000%", 1_000), ("5.25%", 52)]
        {
            assert_eq!(text.parse::<Amount>().map(|share| share.of(1_000)), Ok(share), "{text}");
        }
        assert_eq!(
            ["10.5%", "7%", "0.25%"].map(|text| text.parse::<Percent>().unwrap().to_string()),
            ["10.5%", "7%", "0.25%"]
        );
        for wrong in [
            "",
            "%",
            "-1",
            "101%",
            "100.001%",
            "1.2345%",
            ".5%",
            "5.%",
            "5,5%",
            "+5%",
            "99999999999%",
            "8k",
            "1e3",
        ] {
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
