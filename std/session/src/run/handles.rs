//! The numbers by which the model reads messages that the compactions of a run have hidden or shortened.

use std::collections::BTreeMap;

use epitome_core::Seq;

use super::live::Run;
use super::{RecallTool, RunSettings};
use crate::compaction::OWN_TOOLS;
use crate::history::Handles;
use crate::session::Tool;

/// The handles of a stored history, if `tools` let the model read it by number. A tool of the caller or of a provider
/// with the name of the recall tool reads something else.
pub(super) fn handles_of_log(settings: &RunSettings, tools: &[Tool]) -> Option<Handles> {
    let is_ours = |tool: &Tool| tool.name != RecallTool::NAME || tool.context_source() == Some(OWN_TOOLS);
    (settings.recall && tools.iter().all(is_ours)).then(|| Handles::new(RecallTool::NAME))
}

impl Run<'_> {
    /// The handles of a copy of the whole request, if the model can read by number.
    pub(super) fn handles(&self) -> Option<Handles> {
        handles_of_log(self.settings, self.context.tools())?;
        let numbers = self.working.numbers_of_live(&self.log_numbers());
        Some(Handles::renumbered(RecallTool::NAME, numbers))
    }

    /// The numbers in the log of the messages outside the history that this run stores. Messages that were stored when
    /// the run began have their numbers; the others have the next ones.
    ///
    /// The numbers are the same as long as the run lasts. The log has the same numbers, unless other writers append to
    /// the session meanwhile.
    pub(super) fn log_numbers(&self) -> BTreeMap<Seq, Seq> {
        let Some(primary) = self.providers.primary_history() else { return BTreeMap::new() };
        let places = primary.stored_of(&self.context).map(|(place, _)| place);
        let numbers = places.zip(self.working.log_numbers());
        numbers.filter_map(|(place, seq)| Some((self.working.number_of(place)?, seq))).collect()
    }

    /// Whether notes of this run name other numbers than the log has, because other writers have appended to the
    /// session meanwhile. `logged` has the numbers in the log.
    pub(super) fn names_other_numbers(&self, logged: &BTreeMap<Seq, Seq>) -> bool {
        if handles_of_log(self.settings, self.context.tools()).is_none() {
            return false;
        }
        let named = self.log_numbers();
        logged.iter().any(|(number, seq)| named.get(number).is_some_and(|named| named != seq))
    }
}
