//! Weighted least squares with bounds: `0 <= weight < 1` token for every cell.

use epitome_core::estimate::{CELLS_COUNT, WEIGHT_OF_ONE};

use crate::{Sample, UPWARD};

/// The normal equations of a set of samples. Sets can be added and subtracted, so that a fold can be left out without
/// reading the files again.
#[derive(Clone)]
pub(crate) struct Equations {
    /// Row-major, `CELLS_COUNT` squared.
    left: Vec<f64>,
    right: Vec<f64>,
}

/// The table, in units of `1 / WEIGHT_OF_ONE` token.
pub(crate) struct Weights(Vec<u8>);

impl Equations {
    pub(crate) fn new() -> Self {
        Self { left: vec![0.0; CELLS_COUNT * CELLS_COUNT], right: vec![0.0; CELLS_COUNT] }
    }

    pub(crate) fn add_sample(&mut self, sample: &Sample, importance: f64) {
        for &(cell, count) in &sample.cells {
            self.right[cell] += importance * count * sample.tokens * UPWARD;
            let row = &mut self.left[cell * CELLS_COUNT..][..CELLS_COUNT];
            sample.cells.iter().for_each(|&(other, times)| row[other] += importance * count * times);
        }
    }

    pub(crate) fn add(&mut self, other: &Self, times: f64) -> &mut Self {
        self.left.iter_mut().zip(&other.left).for_each(|(value, more)| *value += times * more);
        self.right.iter_mut().zip(&other.right).for_each(|(value, more)| *value += times * more);
        self
    }

    /// Solves the equations in real numbers, then rounds one cell after the other; each cell compensates the rounding
    /// of the others.
    pub(crate) fn solve(&self) -> Weights {
        let expected = self.by_column();
        let mut weights = expected.clone();
        self.descend(&mut weights, &expected, |weight| weight.clamp(0.0, LARGEST));
        self.descend(&mut weights, &expected, |weight| (weight.clamp(0.0, LARGEST) * ONE).round() / ONE);
        Weights(weights.iter().map(|weight| (weight * ONE).round() as u8).collect())
    }

    /// The expected weight of each cell, before its own samples are considered: the best table with equal rows.
    fn by_column(&self) -> Vec<f64> {
        let mut columns = Self::new();
        for cell in 0..CELLS_COUNT {
            columns.right[column(cell)] += self.right[cell];
            for other in 0..CELLS_COUNT {
                columns.left[column(cell) * CELLS_COUNT + column(other)] +=
                    self.left[cell * CELLS_COUNT + other];
            }
        }
        let mut weights = vec![0.3; CELLS_COUNT];
        columns.descend(&mut weights, &vec![0.3; CELLS_COUNT], |weight| weight.clamp(0.0, LARGEST));
        (0..CELLS_COUNT).map(|cell| weights[column(cell)]).collect()
    }

    /// Coordinate descent: sets one weight after the other to its best value given the others.
    fn descend(&self, weights: &mut [f64], expected: &[f64], allowed: impl Fn(f64) -> f64) {
        for weight in weights.iter_mut() {
            *weight = allowed(*weight);
        }
        let mut product: Vec<f64> = self
            .left
            .chunks(CELLS_COUNT)
            .map(|row| row.iter().zip(&*weights).map(|(a, b)| a * b).sum())
            .collect();
        for _ in 0..SWEEPS_MAX {
            let mut largest_step = 0.0_f64;
            for cell in 0..CELLS_COUNT {
                let row = &self.left[cell * CELLS_COUNT..][..CELLS_COUNT];
                let rest = self.right[cell] - product[cell] + row[cell] * weights[cell];
                let best = allowed((rest + RIDGE * expected[cell]) / (row[cell] + RIDGE));
                let step = best - weights[cell];
                if step.abs() > 1e-7 {
                    weights[cell] = best;
                    largest_step = largest_step.max(step.abs());
                    product.iter_mut().zip(row).for_each(|(value, factor)| *value += step * factor);
                }
            }
            if largest_step < 1e-5 {
                break;
            }
        }
    }
}

impl Weights {
    /// The estimate of `ClassEstimator`: rounded, at least one.
    pub(crate) fn estimate(&self, sample: &Sample) -> f64 {
        let sum: f64 = sample.cells.iter().map(|&(cell, count)| f64::from(self.0[cell]) * count).sum();
        (sum / ONE).round().max(1.0)
    }

    /// The module of `epitome-core` that holds the table.
    pub(crate) fn to_rust(&self) -> String {
        let mut source = String::from(
            "//! The fitted table. Made by `cargo run --release -p epitome-benches --bin fit_estimator`; not edited by hand.\n\n\
             use super::classes::CELLS;\n\n\
             /// By cell, in 1/256 token.\n\
             #[rustfmt::skip]\n\
             pub(super) const WEIGHTS: [u8; CELLS] = [\n",
        );
        for (row, weights) in self.0.chunks(COLUMNS).enumerate() {
            source += &match row {
                0..16 => format!("    // after classes {} and {}\n", 2 * row, 2 * row + 1),
                16..19 => format!(
                    "    // after classes {} and {}, in the middle of words\n",
                    2 * row - 10,
                    2 * row - 9
                ),
                _ => format!("    // after classes {} and {}, late in words\n", 2 * row - 16, 2 * row - 15),
            };
            for half in weights.chunks(COLUMNS / 2) {
                let numbers: Vec<String> = half.iter().map(|weight| format!("{weight:3}")).collect();
                source += &format!("    {},\n", numbers.join(", "));
            }
        }
        source + "];\n"
    }
}

/// The byte class of a cell.
const fn column(cell: usize) -> usize {
    cell % COLUMNS
}

const COLUMNS: usize = 32;
const ONE: f64 = WEIGHT_OF_ONE as f64;
const LARGEST: f64 = 255.0 / 256.0;
/// Weight of the expected value of a cell, in tokens of evidence.
const RIDGE: f64 = 5.0;
const SWEEPS_MAX: usize = 300;
