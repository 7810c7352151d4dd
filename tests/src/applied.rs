//! A conversation after a plan: the content of a store that has written the edits.

use epitome_core::{
    Index, Outcome, PartKind, PartVerdict, Placeholders, Plan, PlannedEdit, Planner, StandIn, StandIns,
    Tokens,
};

use crate::message::Message;
use crate::naive::Request;

/// Content of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// All messages. Those that the plan shortens or replaces have their stand-ins.
    pub messages: Vec<Message>,
    /// Positions of the visible messages, ascending. A summary has the position of the first message that it replaces.
    pub visible: Vec<usize>,
    /// The size that the filled plan states.
    pub tokens: u64,
    /// Number of parts that were shortened.
    pub shortened: usize,
    /// Whether each stand-in has its full allowance. There is one note for each kind of part, with the smallest
    /// allowance of that kind.
    pub full: bool,
}

/// Makes a plan, fills it, and writes its edits. `None` if there is no plan.
///
/// # Panics
/// If the plan cannot be filled with stand-ins that have their full allowance, or half of it (`half`).
#[must_use]
pub fn applied(messages: &[Message], index: Index<'_>, request: &Request, half: bool) -> Option<Applied> {
    let mut planner = Planner::new();
    let outcome = planner.plan(index, &request.budget, request.pass, &request.strategy);
    let Ok(Outcome::Planned(plan)) = outcome else { return None };
    let size = |tokens: Tokens| if half { Tokens(tokens.0 / 2) } else { tokens };
    let note = |kind| StandIn::new("[-]", size(smallest(&plan, kind)));
    let notes = Placeholders::new()
        .with_tool_result(note(PartKind::ToolResult))
        .with_tool_input(note(PartKind::ToolInput))
        .with_media(note(PartKind::Media))
        .with_text(note(PartKind::Text));
    let cut: Vec<_> = plan.clamps().map(|gap| StandIn::new("h..t", size(gap.clamp.tokens_max()))).collect();
    let written: Vec<_> = plan.summaries().map(|gap| StandIn::new("S.", size(gap.allowance))).collect();
    let stand_ins = StandIns::new(notes).with_clamps(&cut).with_summaries(&written);
    let ready = plan.fill(stand_ins).expect("what it needs is there");
    let mut applied = Applied {
        messages: messages.to_vec(),
        visible: (0..messages.len()).collect(),
        tokens: ready.tokens_after(),
        shortened: plan.shortened().count(),
        full: !half && plan.shortened().all(|(part, verdict)| is_smallest(&plan, part.kind(), verdict)),
    };
    let mut summaries = Vec::new();
    // From the last edit on, because the removal of a part changes the numbers of the parts behind it.
    for edit in ready.edits().collect::<Vec<_>>().into_iter().rev() {
        match edit {
            PlannedEdit::Hide(positions) => applied.visible.retain(|at| !positions.contains(&(*at as u32))),
            PlannedEdit::Part(part) => {
                let note = part.stand_in.map(|note| note.tokens.0);
                applied.messages[part.position as usize].shorten(part.ordinal as usize, note);
            }
            PlannedEdit::Summary(summary) => {
                let (position, tokens) = (summary.position as usize, summary.stand_in.tokens.0);
                applied.messages[position] = Message::summary(tokens);
                summaries.push(position);
            }
            other => unreachable!("no strategy asks for {other:?}"),
        }
    }
    applied.visible.extend(summaries);
    applied.visible.sort_unstable();
    Some(applied)
}

/// Whether the note for this kind of part has the full allowance of this verdict.
fn is_smallest(plan: &Plan<'_>, kind: PartKind, verdict: PartVerdict) -> bool {
    !matches!(verdict, PartVerdict::Elide(allowance) if allowance != smallest(plan, kind))
}

/// The smallest allowance of a note for this kind of part.
fn smallest(plan: &Plan<'_>, kind: PartKind) -> Tokens {
    let of_kind = plan.shortened().filter(|(part, _)| part.kind() == kind);
    let allowances = of_kind.filter_map(|(_, verdict)| match verdict {
        PartVerdict::Elide(allowance) => Some(allowance),
        _ => None,
    });
    allowances.min().unwrap_or(Tokens(9))
}
