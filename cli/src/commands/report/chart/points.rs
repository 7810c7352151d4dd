//! The points of a drawing of the context over time.

use super::super::context::Context;
use super::super::kind::ByKind;

/// The size of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Point {
    /// The number of the request, counted from 0.
    pub(super) at: usize,
    pub(super) tokens: ByKind,
}

/// Number of drawn requests, besides those with a compaction.
const POINTS: usize = 480;

/// The drawn sizes: before and after each compaction, and of other requests at equal distances.
pub(super) fn points(context: &Context) -> Vec<Point> {
    let every = context.requests.len().div_ceil(POINTS).max(1);
    let mut compactions = context.compactions.iter().peekable();
    let mut points = Vec::new();
    for (at, request) in context.requests.iter().enumerate() {
        let compaction = compactions.next_if(|found| found.messages_before == request.messages_before);
        let is_last = at + 1 == context.requests.len();
        points.extend(compaction.map(|compaction| Point { at, tokens: compaction.before }));
        if compaction.is_some() || at.is_multiple_of(every) || is_last {
            points.push(Point { at, tokens: request.tokens });
        }
    }
    // A line needs two ends.
    if let [only] = points.as_slice() {
        points.push(Point { at: only.at + 1, ..*only });
    }
    points
}
