//! The decision about a prune.

use epitome_core::Revision;

use super::super::{Changes, Facts, Needs, Prunable, Prune, Reply};
use super::{Decision, there};
use crate::{Pruned, StoreError, rules};

pub(super) fn needs(through: Revision) -> Needs<'static> {
    Needs { prunable: Some(through), ..Needs::default() }
}

pub(super) fn decide(through: Revision, facts: &Facts) -> Result<Decision<'_>, StoreError> {
    let before = there(facts, "prune")?;
    rules::check_prune(through, before.revision)?;
    let Prunable { messages, summaries, before: pruned_before } = &facts.prunable;
    if messages.is_empty() && summaries.is_empty() {
        // The answer is the result of the latest prune through the same revision, or an empty result.
        let nothing = Pruned::new(before.revision, through);
        return Ok(Decision::Answer(Reply::Pruned(pruned_before.unwrap_or(nothing))));
    }
    let mut changes = Changes::of(facts.session);
    changes.after.revision = before.revision.next();
    let mut pruned = Pruned::new(changes.after.revision, through);
    pruned.messages = messages.len() as u64;
    pruned.summaries = summaries.len() as u64;
    changes.pruned = Some(Prune { pruned, messages, summaries });
    Ok(Decision::Change(changes, Reply::Pruned(pruned)))
}
