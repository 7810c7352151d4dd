//! Stores that omit one step, and the scenario that finds each of them.

use std::sync::Arc;

use async_trait::async_trait;
use epitome_conformance::{OneStore, Subject, Suite};
use epitome_std::history::{HistoryStore, LogSearch, MemoryStore, StoreError, StoreErrorKind};
use futures::executor::block_on;

use crate::support::fill;

mod broken;

pub(crate) use broken::{Broken, Fault, pause};

/// Each omitted step, and the scenario that finds it.
const FOUND: &[(Fault, &str)] = &[
    (Fault::ForgetsTokens, "an_append_with_the_same_token_is_done_once"),
    (Fault::BelievesTokens, "a_token_for_other_messages_is_invalid"),
    (Fault::LooksAtTheHeadFirst, "a_token_is_looked_at_before_the_head_and_the_revision"),
    (Fault::IgnoresTheHead, "an_append_behind_or_ahead_of_the_head_is_a_conflict"),
    (Fault::IgnoresTheEnd, "an_append_at_the_end_goes_behind_what_others_have_appended"),
    (Fault::ReadsTheHeadThenAppends, "of_two_appends_at_one_head_one_succeeds"),
    (Fault::IgnoresTheRevision, "a_stale_commit_is_a_conflict"),
    (Fault::ReadsTheRevisionThenCommits, "of_two_commits_on_one_revision_one_succeeds"),
    (Fault::CommitsWithoutEdits, "edits_hides_and_summaries_are_one_step"),
    (Fault::CommitsWithoutSummaries, "a_summary_stands_at_the_lowest_number_that_it_covers"),
    (Fault::CommitsWithoutUnansweredCalls, "unanswered_calls_of_all_records_are_carried_over"),
    (Fault::CommitsNothing, "a_commit_hides_and_deletes_nothing"),
    (Fault::TakesTheHeadOfNow, "a_group_that_has_grown_since_is_a_conflict"),
    (Fault::ForgetsRecords, "a_commit_repeated_after_a_lost_answer_is_no_conflict"),
    (Fault::LosesLate, "a_late_answer_to_a_visible_group_is_visible_and_moves_the_revision"),
    (Fault::LosesOrphans, "an_orphan_is_in_the_log_and_never_visible"),
    (Fault::LosesSizesOfParts, "sizes_of_parts_are_kept"),
    (Fault::LosesCounters, "counts_are_kept_as_they_are_given"),
    (Fault::CutsTextAtNul, "any_text_is_kept"),
    (Fault::SaysHiddenByTheLatest, "a_late_answer_to_a_hidden_group_is_hidden_by_the_same_revision"),
    (Fault::SaysNothingOfEdits, "an_edit_is_shown_and_the_log_keeps_the_original"),
    (Fault::LogsBeyondTheRange, "a_log_has_pages"),
    (Fault::LogsOnePage, "a_log_has_pages"),
    (Fault::RecordsTheOneBefore, "records_are_kept_whole_and_have_pages"),
    (Fault::ListsBackwards, "a_list_has_pages_in_the_order_of_bytes"),
    (Fault::ListsTheLastAgain, "a_list_has_pages_in_the_order_of_bytes"),
    (Fault::CountsWhatIsHidden, "a_commit_hides_and_deletes_nothing"),
    (Fault::CutsTheTail, "the_tail_is_the_last_turn"),
    (Fault::DeletesNoTokens, "a_deleted_session_is_gone_with_everything"),
    (Fault::DeletesWhatIsNotThere, "what_is_not_there_is_not_found"),
    (Fault::LoadsWhatIsNotThere, "what_is_not_there_is_not_found"),
    (Fault::FoldsCase, "any_text_names_a_session"),
    (Fault::CutsNamesAtNul, "any_text_names_a_session"),
    (Fault::ShowsText, "nothing_shows_text"),
    (Fault::UndoesAnyRecord, "records_are_undone_latest_first"),
    (Fault::ForgetsUndoing, "an_undoing_repeated_after_a_lost_answer_is_no_conflict"),
    (Fault::PrunesMore, "no_more_is_deleted_than_was_hidden_by_then"),
    (Fault::PrunesWithoutAnswer, "a_prune_repeated_gives_the_same_answer"),
    (Fault::AppendsThenKeepsTheState, "nobody_sees_an_append_without_its_state"),
    (Fault::KeepsTheStateThenAppends, "a_refused_append_keeps_no_state"),
    (Fault::RefusesAllThatIsStale, "a_stale_state_is_refused_and_the_append_is_not"),
    (Fault::IgnoresTheStatesRevision, "of_two_states_made_from_one_one_is_kept"),
    (Fault::ForgetsStates, "an_append_with_a_state_is_done_once"),
    (Fault::CutsStatesAtNul, "any_text_is_a_state"),
    (Fault::KeepsNoStates, "any_text_is_a_state"),
    (Fault::BelievesSummaries, "a_summary_has_no_more_authority_than_what_it_covers"),
    (Fault::BelievesSummaries, "a_summary_of_a_summary_has_no_more_authority"),
    (Fault::BelievesEdits, "an_edit_does_not_speak_for_a_user"),
    (Fault::BelievesEdits, "an_edit_does_not_speak_for_an_instruction"),
    (Fault::ForgetsInstructions, "instructions_and_pins_are_not_hidden"),
    (Fault::ForgetsInstructions, "instructions_and_pins_are_not_shortened"),
    (Fault::ForgetsPins, "instructions_and_pins_are_not_hidden"),
    (Fault::LosesTimes, "a_clock_that_was_set_back_is_not_believed"),
];

#[test]
fn a_store_that_leaves_one_step_out_is_found_out() {
    for (fault, scenario) in FOUND {
        let subject = OneStore::new(Arc::new(Broken::new(*fault)));
        let report = block_on(Suite::new().run_one(scenario, &subject));
        assert_eq!(report.failures().count(), 1, "{fault:?} was not found out by {scenario}");
        println!("{fault:?}: {report}");
    }
}

/// Without a fault the wrapper passes: the scenarios find the faults, not the wrapper.
#[test]
fn the_same_without_a_fault_passes() {
    block_on(Suite::new().run(&OneStore::new(Arc::new(Broken::new(Fault::None))))).assert_passed();
}

/// Each handle has its own sessions.
struct Apart;

#[async_trait]
impl Subject for Apart {
    async fn open(&self, _: &str) -> Result<Arc<dyn HistoryStore>, StoreError> {
        Ok(Arc::new(MemoryStore::new()))
    }
}

#[test]
fn handles_that_do_not_see_each_other_are_found_out() {
    let found: Vec<String> = block_on(Suite::new().with_cases(20).run(&Apart))
        .failures()
        .map(|(scenario, _)| scenario.to_owned())
        .collect();
    assert!(found.contains(&"two_handles_see_one_session".to_owned()), "{found:?}");
    assert!(found.contains(&"a_handle_that_is_opened_later_finds_everything".to_owned()), "{found:?}");
    assert!(found.contains(&"what_another_handle_deleted_is_gone".to_owned()), "{found:?}");
}

#[test]
fn a_list_that_does_not_advance_is_not_searched_without_end() {
    let store = Broken::new(Fault::ListsTheLastAgain);
    fill(&store, 1);
    let error = block_on(store.search(&LogSearch::new("message"))).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{error}");
}
