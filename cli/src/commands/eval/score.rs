//! The share of the model's next needs that is shown, and the ceilings that look for it.

use std::collections::BTreeSet;

use super::case::Cut;
use super::contender::Contender;
use super::need::{Need, share};
use super::shown::Shown;
use super::words::runs;

/// The share of the needs that is shown; `None` if there are none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Score {
    pub(super) identifiers: Option<f64>,
    /// The share of the identifiers, weighted: a rare one weighs more.
    pub(super) weighted: Option<f64>,
    pub(super) runs: Option<f64>,
}

impl Score {
    pub(super) fn of(shown: &Shown, cut: &Cut<'_>) -> Self {
        let shown_runs: BTreeSet<u64> = shown.new.iter().flat_map(|text| runs(text)).collect();
        let has_run = |need: &Need<u64>| shown.shows_whole(need) || shown_runs.contains(&need.unit);
        Self {
            identifiers: share(&cut.identifiers, |need| shown.has(need), |_| 1.0),
            weighted: share(&cut.identifiers, |need| shown.has(need), |need| need.rarity(cut.at)),
            runs: share(&cut.runs, has_run, |_| 1.0),
        }
    }
}

/// The ceilings: one for each metric.
pub(super) const ORACLES: [Contender<'static>; 2] =
    [Contender::Oracle(OF_IDENTIFIERS), Contender::Oracle(OF_TEXT)];

/// For each need that a ceiling looks for, the messages that contain it.
pub(super) fn looked_for<'c>(contender: Contender<'_>, cut: &'c Cut<'_>) -> Vec<&'c [u32]> {
    match contender {
        Contender::Oracle(OF_TEXT) => places(&cut.runs),
        Contender::Oracle(_) => places(&cut.identifiers),
        _ => Vec::new(),
    }
}

/// For each need, the messages that contain it.
fn places<T>(needs: &[Need<T>]) -> Vec<&[u32]> {
    needs.iter().map(|need| &*need.stands_in).collect()
}

const OF_IDENTIFIERS: &str = "(oracle: identifiers)";
const OF_TEXT: &str = "(oracle: copied text)";
