//! A unit of information that was needed after a compaction.

/// A needed unit of information, and its places before the compaction.
#[derive(Debug)]
pub(super) struct Need<T> {
    pub(super) unit: T,
    /// The messages before the compaction that contain it, in order.
    pub(super) stands_in: Vec<u32>,
    /// The first message after the cut that needs it, or the question.
    pub(super) needed_at: u32,
}

impl<T> Need<T> {
    /// The weight of the unit: larger if fewer of `messages` contain it.
    pub(super) fn rarity(&self, messages: usize) -> f64 {
        (1.0 + messages as f64 / self.stands_in.len().max(1) as f64).ln()
    }
}

/// The weight of the needs that `has` finds, as a share of the weight of all needs; `None` if there are none.
pub(super) fn share<T>(
    needs: &[Need<T>],
    has: impl Fn(&Need<T>) -> bool,
    weight: impl Fn(&Need<T>) -> f64,
) -> Option<f64> {
    let all: f64 = needs.iter().map(&weight).sum();
    let shown: f64 = needs.iter().filter(|need| has(need)).map(&weight).sum();
    (all > 0.0).then(|| shown / all)
}
