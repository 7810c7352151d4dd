//! Order of roles: neighbours of one role are merged, and missing messages between others are invented.

use alloc::vec::Vec;

use super::{Repair, Request};
use crate::profile::{First, Neighbours};
use crate::shape::Kind;

/// Merges and completes `steps` so that the rules allow their order of roles. No message is moved.
pub(super) fn arrange(request: &Request<'_>, mut steps: Vec<Repair>) -> Vec<Repair> {
    begin(request, &mut steps);
    match request.rules.neighbours {
        Neighbours::Free | Neighbours::Joined => steps,
        Neighbours::Alternate => alternate(request, &steps),
        Neighbours::AlternateBesideTools => alternate_beside_tools(request, &steps),
    }
}

/// Puts a user message at the beginning, behind the instructions, if the rules require one and there is none.
fn begin(request: &Request<'_>, steps: &mut Vec<Repair>) {
    let at = steps.iter().position(|step| request.kind(*step) != Some(Kind::Instruction));
    let at = at.unwrap_or(steps.len());
    let compaction = |step| match step {
        Repair::Keep(position) | Repair::DropReasoning { position } => {
            request.shape(position).is_some_and(|shape| shape.compaction)
        }
        _ => false,
    };
    let begins = |step: Repair| {
        request.kind(step) == Some(Kind::User)
            || request.rules.first == First::UserOrCompaction && compaction(step)
    };
    if request.rules.first != First::Anyone && !steps.get(at).is_some_and(|step| begins(*step)) {
        steps.insert(at, Repair::BridgeUser);
    }
}

/// Merges neighbours of one role. Results separate messages of the model, and one message of the user may follow them.
fn alternate(request: &Request<'_>, steps: &[Repair]) -> Vec<Repair> {
    let mut out = Vec::with_capacity(steps.len());
    let mut before = None;
    for step in steps {
        let kind = request.kind(*step);
        let merges = match (before, kind) {
            (Some(Kind::User), Some(Kind::User)) => true,
            (Some(before), Some(kind)) => before.is_model() && kind.is_model(),
            _ => false,
        };
        out.push(merged_if(merges, *step));
        before = kind;
    }
    out
}

/// Brings each turn into the form: the user, calls with results, one text of the model.
///
/// A text before calls is merged with them, so that it does not count. It may stay where it is only in the last turn, as
/// its only text: nothing that counts follows it there.
fn alternate_beside_tools(request: &Request<'_>, steps: &[Repair]) -> Vec<Repair> {
    let is_user = |step: &Repair| request.kind(*step) == Some(Kind::User);
    let last_turn = steps.iter().rposition(is_user).unwrap_or(0);
    let texts = steps.iter().skip(last_turn).filter(|step| request.kind(**step) == Some(Kind::Says)).count();
    let mut out = Vec::with_capacity(steps.len());
    let mut before = None;
    for (at, step) in steps.iter().enumerate() {
        let kind = request.kind(*step);
        let merges = match (before, kind) {
            (Some(Kind::User), Some(Kind::User)) | (Some(Kind::Says), Some(Kind::Says)) => true,
            (Some(Kind::Says), Some(Kind::Calls)) => at < last_turn || texts > 1,
            _ => false,
        };
        // Calls stand directly before a user message only while they are running.
        if let (Some(Kind::Result | Kind::Calls), Some(Kind::User)) = (before, kind) {
            out.push(Repair::BridgeAssistant);
        }
        out.push(merged_if(merges, *step));
        before = kind;
    }
    out
}

fn merged_if(merges: bool, step: Repair) -> Repair {
    match step {
        Repair::Keep(position) if merges => Repair::Merge { position },
        _ => step,
    }
}
