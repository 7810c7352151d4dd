//! Means of shares.

/// A mean of values between 0 and 1.
#[derive(Debug, Default)]
pub(super) struct Mean {
    sum: f64,
    count: u64,
}

impl Mean {
    /// Adds a value, if there is one.
    pub(super) fn add(&mut self, value: Option<f64>) {
        if let Some(value) = value {
            self.sum += value;
            self.count += 1;
        }
    }

    /// The mean in percent, with one decimal digit.
    pub(super) fn percent(&self) -> Option<f64> {
        (self.count > 0).then(|| (self.sum / self.count as f64 * 1_000.0).round() / 10.0)
    }
}
