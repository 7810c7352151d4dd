//! Removal of reasoning that lacks the content that it must come with.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::{Repair, Request, Row};
use crate::profile::{Reasoning, Rules};
use crate::shape::Kind;

/// The messages that lose their reasoning, regardless of their place in the repaired request.
pub(super) fn stripped(rows: &[Row], rules: &Rules, first_changed: Option<u32>) -> BTreeSet<u32> {
    match (rules.reasoning, first_changed) {
        (Reasoning::Bound, Some(first)) => positions(rows, |at, row| at >= first && row.shape.opaque),
        (Reasoning::WithCalls, _) => {
            let turn = rows.iter().rposition(|row| row.shape.kind == Kind::User).unwrap_or(0);
            let calls = |at, row: &Row| at as usize >= turn && row.shape.kind == Kind::Calls;
            let without = positions(rows, |at, row| calls(at, row) && !row.shape.reasoning);
            positions(rows, |at, row| !without.is_empty() && calls(at, row) && row.shape.reasoning)
        }
        _ => BTreeSet::new(),
    }
}

fn positions(rows: &[Row], wanted: impl Fn(u32, &Row) -> bool) -> BTreeSet<u32> {
    let rows = (0_u32..).zip(rows);
    rows.filter(|(position, row)| wanted(*position, row)).map(|(position, _)| position).collect()
}

/// `steps` without the reasoning that must not be written.
pub(super) fn drop_reasoning(request: &Request<'_>, steps: Vec<Repair>) -> Vec<Repair> {
    let dropped = match request.rules.reasoning {
        Reasoning::WithNext => lone(request, &steps),
        Reasoning::Bound => overtaken(request, &steps),
        Reasoning::Free | Reasoning::WithCalls => BTreeSet::new(),
    };
    let mut out = Vec::with_capacity(steps.len());
    for step in steps {
        out.extend(match step {
            Repair::Keep(position) if dropped.contains(&position) || request.stripped.contains(&position) => {
                let rest = request.shape(position).is_some_and(|shape| !shape.only_reasoning);
                rest.then_some(Repair::DropReasoning { position })
            }
            _ => Some(step),
        });
    }
    out
}

/// The messages of `steps` with signed reasoning that now stand behind a later message: late instructions, a late
/// result. When the reasoning was signed, that message was not there.
fn overtaken(request: &Request<'_>, steps: &[Repair]) -> BTreeSet<u32> {
    let (mut overtaken, mut newest) = (BTreeSet::new(), 0);
    for step in steps {
        if let Repair::Keep(position) = *step {
            if position < newest && request.shape(position).is_some_and(|shape| shape.opaque) {
                overtaken.insert(position);
            }
            newest = newest.max(position);
        }
    }
    overtaken
}

/// The messages of `steps` that end with reasoning and are not followed by the content that it led to.
fn lone(request: &Request<'_>, steps: &[Repair]) -> BTreeSet<u32> {
    let mut lone = BTreeSet::new();
    let (mut dangling, mut response) = (Vec::new(), None);
    for step in steps {
        let row = match step {
            Repair::Keep(position) => request.shape(*position).map(|shape| (*position, shape)),
            _ => None,
        };
        let Some((position, shape)) = row.filter(|(_, shape)| shape.kind.is_model()) else {
            lone.extend(dangling.drain(..));
            continue;
        };
        if !shape.is_of(response) {
            lone.extend(dangling.drain(..));
        }
        if dangling.is_empty() || !shape.only_reasoning {
            dangling.clear();
            response = None;
        }
        if shape.dangling || !dangling.is_empty() {
            dangling.push(position);
            response = response.or(shape.response);
        }
    }
    lone.extend(dangling);
    lone
}
