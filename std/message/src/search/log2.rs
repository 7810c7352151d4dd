//! Logarithms that are equal on every platform.

/// Number of bits behind the binary point.
const BITS: u32 = 16;

/// The logarithm to base 2, in units of 1 / 65,536, rounded down; that of 0 is 0.
pub(super) fn log2(number: u64) -> u64 {
    let Some(whole) = number.checked_ilog2() else { return 0 };
    // A fixed-point number between 1 and 2, with 63 bits behind the point. Its square has twice the logarithm.
    let mut rest = u128::from(number) << (63 - whole);
    let mut log = u64::from(whole);
    for _ in 0..BITS {
        rest = (rest * rest) >> 63;
        let bit = rest >> 64;
        rest >>= bit;
        log = (log << 1) | u64::from(bit == 1);
    }
    log
}

/// Rarities of terms: `log2(1 + all / with)` for a term in `with` of `all` texts, in units of 1 / 65,536. Each is
/// computed once.
pub(super) struct Rarities {
    all: u64,
    known: Vec<Option<u64>>,
}

/// Number of rarities in memory. With a larger `with`, a rarity is computed each time.
const KNOWN_MAX: usize = 4_096;

impl Rarities {
    pub(super) const fn among(all: u64) -> Self {
        Self { all, known: Vec::new() }
    }

    pub(super) fn of(&mut self, with: u32) -> u64 {
        let (own, at) = (u64::from(with).max(1), with as usize);
        let compute = || log2(self.all.saturating_add(own)).saturating_sub(log2(own));
        if at >= KNOWN_MAX {
            return compute();
        }
        if at >= self.known.len() {
            self.known.resize(at + 1, None);
        }
        match self.known.get_mut(at) {
            Some(known) => *known.get_or_insert_with(compute),
            None => compute(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rarity_is_that_of_its_formula() {
        let mut rarities = Rarities::among(5_000);
        for with in [1, 7, 5_000, 4_096, 1, 7, 4_095] {
            let own = u64::from(with);
            assert_eq!(rarities.of(with), log2(5_000 + own) - log2(own), "{with}");
        }
        assert_eq!(Rarities::among(3).of(0), log2(4));
    }

    #[test]
    fn it_is_the_logarithm() {
        for number in (1..5_000).chain([65_535, 65_536, 1 << 40, u64::MAX]) {
            let exact = (number as f64).log2() * 65_536.0;
            assert!((log2(number) as f64 - exact).abs() <= 1.0, "{number}: {} not {exact}", log2(number));
        }
        assert_eq!([log2(0), log2(1), log2(2), log2(1 << 63)], [0, 0, 65_536, 63 * 65_536]);
    }
}
