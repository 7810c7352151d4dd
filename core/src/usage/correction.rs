//! Error of a counter, learned from reports, in integers.

use core::fmt;

/// Ratio of the provider's tokens to the counter's: fixed point, in steps of 1/65,536, from 1/2 to 4.
///
/// Estimators are off by up to four times on text that they do not know (a CJK tail counted by characters, base64), and
/// by half on text that they overestimate. A ratio outside of this range comes from a report about other content.
///
/// ```
/// use epitome_core::Correction;
///
/// let half_again = Correction::of(1_500, 1_000).unwrap_or_default();
/// assert_eq!(half_again.reported_from(2_000), 3_000);
/// assert_eq!(half_again.counted_from(3_000), 2_000);
/// assert_eq!(half_again.to_string(), "1.500");
/// assert_eq!(Correction::of(1, 1_000), Some(Correction::MIN));
/// assert_eq!(Correction::of(1, 0), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Correction(u32);

const BITS: u32 = 16;
const ONE: u32 = 1 << BITS;
const LOW: u64 = ONE as u64 - 1;

impl Default for Correction {
    fn default() -> Self {
        Self::ONE
    }
}

impl Correction {
    /// The counter is exact.
    pub const ONE: Self = Self(ONE);
    /// The provider counts half of the counter's tokens: the lowest ratio.
    pub const MIN: Self = Self(ONE / 2);
    /// The provider counts four times the counter's tokens: the highest ratio.
    pub const MAX: Self = Self(ONE * 4);

    /// The ratio of a reported to a counted amount, rounded down and limited to the range. `None` if nothing was
    /// counted.
    #[must_use]
    pub const fn of(reported: u64, counted: u64) -> Option<Self> {
        let (Some(whole), Some(rest)) = (reported.checked_div(counted), reported.checked_rem(counted)) else {
            return None;
        };
        if whole >= 4 {
            return Some(Self::MAX);
        }
        // The rest is less than `counted`: where its product does not fit, `counted` is large enough to be shifted.
        let part = match rest.checked_mul(ONE as u64) {
            Some(rest) => rest.checked_div(counted),
            None => rest.checked_div(counted >> BITS),
        };
        let ratio = (whole << BITS).saturating_add(match part {
            Some(part) => part,
            None => 0,
        });
        // At most 5 x 65,536: it fits.
        Some(if ratio < Self::MIN.0 as u64 {
            Self::MIN
        } else if ratio > Self::MAX.0 as u64 {
            Self::MAX
        } else {
            Self(ratio as u32)
        })
    }

    /// The provider's amount for `counted` tokens, rounded up; at most `u64::MAX`.
    #[must_use]
    pub const fn reported_from(self, counted: u64) -> u64 {
        self.scaled(counted, LOW)
    }

    /// The provider's amount, rounded down: for an amount that is subtracted.
    pub(super) const fn reported_at_least(self, counted: u64) -> u64 {
        self.scaled(counted, 0)
    }

    /// The number of the counter's tokens that make up `reported` tokens of the provider, rounded up; at most `u64::MAX`.
    #[must_use]
    pub const fn counted_from(self, reported: u64) -> u64 {
        let ratio = self.0 as u64;
        let (Some(whole), Some(rest)) = (reported.checked_div(ratio), reported.checked_rem(ratio)) else {
            return reported;
        };
        // Shifted, the rest is below 2^34; the whole may not fit.
        whole.saturating_mul(ONE as u64).saturating_add((rest << BITS).div_ceil(ratio))
    }

    /// The ratio in thousandths, rounded to the nearest.
    #[must_use]
    pub const fn per_mille(self) -> u32 {
        // At most 4 x 65,536 x 1,000: it fits.
        self.0.saturating_mul(1_000).saturating_add(ONE / 2) >> BITS
    }

    /// Exact: the upper bits times the ratio are whole tokens, and the lower product fits.
    const fn scaled(self, counted: u64, round: u64) -> u64 {
        let ratio = self.0 as u64;
        let whole = (counted >> BITS).saturating_mul(ratio);
        let part = (counted & LOW).saturating_mul(ratio).saturating_add(round) >> BITS;
        whole.saturating_add(part)
    }
}

impl fmt::Display for Correction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let per_mille = self.per_mille();
        write!(f, "{}.{:03}", per_mille / 1_000, per_mille % 1_000)
    }
}

/// Fading sums of the reported and the counted amounts of a counter. A large request weighs more than a small one,
/// which is mostly framing. A recent request weighs more than an old one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Learned {
    reported: u64,
    counted: u64,
}

/// Divisor of the sums: a quarter of them fades with each report. After eight reports a tenth is left.
const FADE: u64 = 4;
/// Amounts are shifted below 2^60, so that the sums, which become four times as large, fit.
const SPARE_BITS: u32 = 4;

impl Learned {
    /// Records a request that was counted and reported. A ratio beyond a limit counts as the limit, so that a single
    /// odd report does not undo the others.
    pub(super) const fn add(&mut self, reported: u64, counted: u64) {
        let most = counted.saturating_mul(4);
        let least = counted.div_ceil(2);
        let reported = if reported > most {
            most
        } else if reported < least {
            least
        } else {
            reported
        };
        let larger = if reported > counted { reported } else { counted };
        let shift = SPARE_BITS.saturating_sub(larger.leading_zeros());
        self.reported = faded(self.reported).saturating_add(reported >> shift);
        self.counted = faded(self.counted).saturating_add(counted >> shift);
    }

    pub(super) const fn correction(self) -> Correction {
        match Correction::of(self.reported, self.counted) {
            Some(correction) => correction,
            None => Correction::ONE,
        }
    }
}

const fn faded(sum: u64) -> u64 {
    sum.saturating_sub(sum / FADE)
}
