//! The table of all scenarios, by their source files.

use super::suite::Scenario;
use super::{
    appends, authority, commits, contents, edits, ends, handles, late_answers, prune, random, search,
    sessions, states, tails, times, undo,
};

/// Defines the table, and a macro that passes all names to another macro.
macro_rules! scenarios {
    ($d:tt $($file:ident: $($scenario:ident),* $(,)?;)*) => {
        /// Every scenario.
        pub(super) const SCENARIOS: &[Scenario] = &[
            $($(Scenario {
                group: stringify!($file),
                name: stringify!($scenario), run: |room| Box::pin($file::$scenario(room)) },)*)*
        ];

        /// Calls a macro with the names of all scenarios of the storage contract, after the given arguments. With a
        /// `#[test] fn $scenario()` in that macro, each scenario becomes a separate test, which calls
        /// [`Suite::run_one`](crate::Suite::run_one).
        ///
        /// ```
        /// macro_rules! tests {
        ///     ($store:literal: $($scenario:ident)*) => {
        ///         [$(concat!($store, "::", stringify!($scenario))),*]
        ///     };
        /// }
        /// let tests = epitome_conformance::conformance_scenarios!(tests! { "mine": });
        /// assert!(tests.contains(&"mine::a_log_has_pages"));
        /// ```
        #[macro_export]
        macro_rules! conformance_scenarios {
            ($d callback:ident ! { $d($d before:tt)* }) => {
                $d callback! { $d($d before)* $($($scenario)*)* }
            };
        }
    };
}

scenarios! { $
    appends:
        an_append_creates_the_session_and_is_loaded_as_it_was_given,
        a_second_append_goes_on_at_the_head,
        an_append_with_the_same_token_is_done_once,
        a_token_is_looked_at_before_the_head_and_the_revision,
        a_token_for_other_messages_is_invalid,
        a_token_is_known_wherever_its_messages_are_placed_now,
        an_append_behind_or_ahead_of_the_head_is_a_conflict,
        an_append_of_nothing_is_invalid,
        an_anchor_after_its_message_is_invalid,
        an_anchor_that_begins_no_group_is_invalid,
        a_group_may_begin_in_an_earlier_append,
        an_answer_to_several_calls_is_invalid,
        an_orphan_is_in_the_log_and_never_visible,
        a_message_of_ten_megabytes_is_kept,
        a_message_that_could_not_be_read_again_is_invalid,
        a_dropped_append_is_found_out_by_its_token,
    ;
    ends:
        an_append_at_the_end_goes_behind_what_others_have_appended,
        an_append_at_the_end_creates_the_session,
        an_append_at_the_end_is_done_once,
        an_answer_at_the_end_joins_its_call,
        an_answer_at_the_end_to_a_hidden_call_is_hidden,
        an_append_at_the_end_keeps_its_state,
        of_appends_at_the_end_at_once_all_succeed,
    ;
    commits:
        a_commit_hides_and_deletes_nothing,
        a_summary_stands_at_the_lowest_number_that_it_covers,
        a_summary_over_a_summary_hides_it,
        a_summary_may_cover_less_than_is_hidden,
        several_ranges_and_summaries_are_one_step,
        a_commit_repeated_after_a_lost_answer_is_no_conflict,
        a_repetition_is_recognized_after_a_late_answer,
        a_stale_commit_is_a_conflict,
        messages_appended_after_the_plan_do_not_matter,
        a_group_that_has_grown_since_is_a_conflict,
        a_record_that_splits_a_group_is_invalid,
        a_record_that_splits_a_summary_is_invalid,
        a_record_that_hides_nothing_visible_is_invalid,
        a_record_from_beyond_the_head_is_invalid,
        ranges_out_of_order_are_invalid,
        a_summary_outside_what_is_hidden_is_invalid,
        an_unanswered_call_outside_what_is_hidden_is_invalid,
        records_are_kept_whole_and_have_pages,
        a_message_that_claims_to_be_a_summary_covers_nothing,
        a_commit_on_no_session_is_not_found,
        a_dropped_commit_is_found_out_by_its_id,
    ;
    authority:
        a_summary_has_no_more_authority_than_what_it_covers,
        a_summary_of_a_summary_has_no_more_authority,
        a_summary_is_a_message_of_the_model_from_a_compaction,
        a_summary_covers_what_its_record_hides_and_nothing_else,
        instructions_and_pins_are_not_hidden,
        instructions_and_pins_are_not_shortened,
        a_record_that_takes_back_hides_instructions_and_pins_too,
        an_answer_that_came_later_is_not_taken_back_with_a_pin,
    ;
    contents:
        any_text_is_kept,
        any_text_of_a_record_is_kept,
        every_kind_of_part_is_kept,
        what_a_message_says_of_itself_is_kept,
        counts_are_kept_as_they_are_given,
        a_thousand_messages_are_one_append,
    ;
    edits:
        an_edit_is_shown_and_the_log_keeps_the_original,
        each_kind_of_part_has_its_stand_in,
        a_part_may_be_edited_again,
        an_edited_message_may_be_hidden,
        edits_hides_and_summaries_are_one_step,
        an_edit_repeated_after_a_lost_answer_is_no_conflict,
        records_keep_their_edits,
        an_edit_of_what_is_not_visible_is_invalid,
        edits_out_of_order_are_invalid,
        an_edit_that_the_part_does_not_allow_is_invalid,
        an_edit_that_is_no_smaller_is_invalid,
        an_edit_does_not_speak_for_a_user,
        an_edit_does_not_speak_for_an_instruction,
        sizes_of_parts_are_kept,
    ;
    late_answers:
        a_late_answer_to_a_visible_group_is_visible_and_moves_the_revision,
        a_plan_made_before_a_late_answer_is_a_conflict,
        a_late_answer_to_a_hidden_group_is_hidden_by_the_same_revision,
        any_answer_to_a_hidden_group_is_hidden,
        a_late_answer_is_hidden_with_its_group,
        several_late_answers_move_the_revision_once,
        unanswered_calls_of_all_records_are_carried_over,
        the_first_call_with_an_id_is_answered_first,
        a_late_append_is_repeatable,
    ;
    sessions:
        what_is_not_there_is_not_found,
        any_text_names_a_session,
        sessions_do_not_touch_each_other,
        a_list_has_pages_in_the_order_of_bytes,
        a_log_has_pages,
        a_deleted_session_is_gone_with_everything,
        an_empty_token_is_a_token,
        nothing_shows_text,
    ;
    states:
        a_state_is_kept_with_its_append,
        a_session_without_a_state_has_none,
        a_stale_state_is_refused_and_the_append_is_not,
        a_refused_append_keeps_no_state,
        an_append_with_a_state_is_done_once,
        a_state_that_did_not_come_to_it_is_kept_by_the_repetition,
        a_state_is_saved_without_an_append,
        a_state_stays_when_the_log_changes,
        any_text_is_a_state,
        states_of_two_sessions_do_not_touch_each_other,
        a_deleted_session_has_no_state,
        a_state_of_no_session_is_not_found,
        of_two_states_made_from_one_one_is_kept,
        nobody_sees_an_append_without_its_state,
        a_dropped_append_leaves_no_state_without_it,
    ;
    tails:
        the_tail_is_the_last_turn,
        tails_of_nothing,
        a_token_tells_what_it_appended,
    ;
    times:
        appends_are_listed_in_order_and_have_pages,
        a_clock_that_was_set_back_is_not_believed,
        a_repetition_keeps_the_first_time,
        a_list_says_when_a_session_was_used,
        appends_of_no_session_are_not_found,
    ;
    undo:
        what_a_record_hid_is_visible_again,
        the_summary_that_a_record_replaced_is_back,
        what_stood_in_a_message_before_is_back,
        a_message_comes_back_as_short_as_it_was,
        an_answer_that_came_late_comes_back_with_its_group,
        calls_that_come_back_are_hidden_no_more,
        records_are_undone_latest_first,
        an_undoing_repeated_after_a_lost_answer_is_no_conflict,
        what_made_no_record_cannot_be_undone,
        an_undone_record_is_remembered_as_undone,
        what_was_undone_can_be_committed_again,
        a_plan_from_before_an_undoing_is_a_conflict,
        an_undoing_on_no_session_is_not_found,
    ;
    handles:
        two_handles_see_one_session,
        a_handle_that_is_opened_later_finds_everything,
        of_two_appends_at_one_head_one_succeeds,
        of_two_commits_on_one_revision_one_succeeds,
        an_append_and_a_commit_at_once_both_succeed,
        one_token_on_many_handles_is_appended_once,
        one_record_on_many_handles_is_committed_once,
        what_another_handle_deleted_is_gone,
    ;
    prune:
        what_is_hidden_is_deleted_and_nothing_else,
        no_more_is_deleted_than_was_hidden_by_then,
        what_a_replaced_summary_said_is_deleted,
        the_texts_that_stood_in_a_pruned_message_are_deleted,
        what_a_shortened_message_said_stays,
        what_an_undone_record_showed_is_deleted,
        a_late_answer_finds_the_group_that_was_pruned,
        an_answer_that_comes_after_a_prune_is_deleted_by_the_next,
        a_prune_repeated_gives_the_same_answer,
        a_prune_of_nothing_changes_nothing,
        what_has_not_come_yet_cannot_be_pruned,
        what_was_pruned_cannot_be_shown_again,
        a_token_is_known_when_its_messages_are_pruned,
        a_plan_from_before_a_prune_is_a_conflict,
        orphans_are_never_pruned,
        prunes_have_pages,
        a_prune_of_no_session_is_not_found,
    ;
    search:
        the_nearest_message_is_found_first,
        messages_in_any_script_are_found,
        a_part_of_a_word_is_not_found,
        calls_and_results_are_found_and_instructions_are_not,
        words_that_nobody_said_find_nothing,
        hidden_and_shortened_messages_are_found_as_they_were_said,
        what_was_pruned_or_deleted_is_not_found,
        a_search_stays_in_its_sessions,
        a_search_stays_in_its_numbers_and_its_time,
        a_search_stays_with_its_tool,
        a_long_log_is_searched_as_a_short_one,
    ;
    random:
        any_series_of_operations_is_answered_as_by_the_naive_twin,
    ;
}
