//! Scenarios of authority: the highest authority of a summary, and the messages that no commit may hide or shorten.

use epitome_core::Revision;
use epitome_core::attribution::{Authority, Retention, SourceKind};
use epitome_core::message::Role;
use epitome_history::StoreErrorKind::Invalid;
use epitome_history::{CompactionRecord, Entry};
use epitome_message::{Attribution, Message};

use super::support::{
    Room, answer, append, calls, commit, edit, edited, entry, everything, fails, fill, keys, late, load,
    orphan, range, record, summarized, uncompact, user,
};

/// The record with a changed attribution in its first summary.
fn claiming(mut record: CompactionRecord, claim: impl FnOnce(&mut Attribution)) -> CompactionRecord {
    let message = record.summaries[0].message.clone();
    let mut claimed = message.attribution().clone();
    claim(&mut claimed);
    record.summaries[0].message = message.with_attribution(claimed);
    record
}

fn with_authority(record: CompactionRecord, authority: Authority) -> CompactionRecord {
    claiming(record, |attribution| attribution.authority = authority)
}

fn instruction(seq: u64) -> Entry {
    entry(Message::system(format!("rule {seq}")), seq, 1)
}

fn pinned(seq: u64) -> Entry {
    let attribution = Attribution::caller(Authority::User).with_retention(Retention::Pinned);
    entry(Message::user(format!("keep {seq}")).with_attribution(attribution), seq, 1)
}

pub(super) async fn a_summary_has_no_more_authority_than_what_it_covers(room: &Room<'_>) {
    let entries = [user(0), calls(1, &["a"]), answer(1, "a"), user(3), user(4)];
    append(room, "t", 0, &entries).await.unwrap();
    let before = everything(room).await;
    let of_user = || summarized(record(0, 5, &[(0, 0)]), &[&[(0, 0)]]);
    for authority in [Authority::System, Authority::Developer, Authority::User] {
        fails(commit(room, &with_authority(of_user(), authority)).await, Invalid);
    }
    let of_tool = || summarized(record(0, 5, &[(0, 2)]), &[&[(0, 2)]]);
    fails(commit(room, &with_authority(of_tool(), Authority::Assistant)).await, Invalid);
    assert_eq!(everything(room).await, before);
    commit(room, &with_authority(of_user(), Authority::Assistant)).await.unwrap();
    commit(room, &with_authority(summarized(record(1, 5, &[(0, 2)]), &[&[(0, 2)]]), Authority::Retrieved))
        .await
        .unwrap();
    assert_eq!(keys(room).await, [0, 3, 4]);
}

pub(super) async fn a_summary_of_a_summary_has_no_more_authority(room: &Room<'_>) {
    fill(room, 5).await;
    commit(room, &with_authority(summarized(record(0, 5, &[(0, 1)]), &[&[(0, 1)]]), Authority::Retrieved))
        .await
        .unwrap();
    let second = |covers: &[(u64, u64)]| {
        with_authority(summarized(record(1, 5, &[(0, 3)]), &[covers]), Authority::Assistant)
    };
    fails(commit(room, &second(&[(0, 3)])).await, Invalid);
    fails(commit(room, &second(&[(1, 3)])).await, Invalid);
    // If the covered messages have the model's authority, the summary may have it too.
    commit(room, &second(&[(2, 3)])).await.unwrap();
    uncompact(room, 2).await.unwrap();
    let third = summarized(record(3, 5, &[(0, 3)]), &[&[(0, 3)]]);
    fails(commit(room, &with_authority(third.clone(), Authority::Assistant)).await, Invalid);
    commit(room, &third).await.unwrap();
}

pub(super) async fn a_summary_is_a_message_of_the_model_from_a_compaction(room: &Room<'_>) {
    fill(room, 4).await;
    let before = everything(room).await;
    let of = || summarized(record(0, 4, &[(1, 2)]), &[&[(1, 2)]]);
    for source in [SourceKind::Caller, SourceKind::History, SourceKind::Context, SourceKind::Tool] {
        fails(commit(room, &claiming(of(), |it| it.source = source)).await, Invalid);
    }
    let pins = claiming(of(), |attribution| attribution.retention = Retention::Pinned);
    fails(commit(room, &pins).await, Invalid);
    for role in [Role::System, Role::Developer, Role::User, Role::Tool] {
        let mut other = of();
        let message = &mut other.summaries[0].message;
        let attribution = message.attribution().clone();
        *message = Message::new(role, message.parts().to_vec()).with_attribution(attribution);
        fails(commit(room, &other).await, Invalid);
    }
    assert_eq!(everything(room).await, before);
    commit(room, &of()).await.unwrap();
}

pub(super) async fn a_summary_covers_what_its_record_hides_and_nothing_else(room: &Room<'_>) {
    let entries = [user(0), user(1), user(2), orphan(answer(3, "gone")), user(4), user(5)];
    append(room, "t", 0, &entries).await.unwrap();
    commit(room, &record(0, 6, &[(1, 1)])).await.unwrap();
    let before = everything(room).await;
    // Message 1 was hidden before, and message 3 is an orphan.
    for covers in [&[(0, 2)][..], &[(0, 1)], &[(1, 1), (4, 4)], &[(2, 4)], &[(0, 0), (3, 4)]] {
        fails(commit(room, &summarized(record(1, 6, &[(0, 4)]), &[covers])).await, Invalid);
    }
    assert_eq!(everything(room).await, before);
    commit(room, &summarized(record(1, 6, &[(0, 4)]), &[&[(0, 0), (2, 2), (4, 4)]])).await.unwrap();
    assert_eq!(keys(room).await, [0, 5]);
}

pub(super) async fn instructions_and_pins_are_not_hidden(room: &Room<'_>) {
    append(room, "t", 0, &[instruction(0), user(1), pinned(2), user(3)]).await.unwrap();
    let before = everything(room).await;
    for hides in [&[(0, 0)][..], &[(0, 1)], &[(2, 2)], &[(1, 2)]] {
        fails(commit(room, &record(0, 4, hides)).await, Invalid);
        fails(commit(room, &summarized(record(0, 4, hides), &[hides])).await, Invalid);
    }
    // Hiding all messages, or all from a given one on, is also refused if a summary replaces them or an earlier message
    // is shortened.
    fails(commit(room, &summarized(record(0, 4, &[(0, 3)]), &[&[(0, 3)]])).await, Invalid);
    fails(commit(room, &summarized(record(0, 4, &[(2, 3)]), &[&[(2, 3)]])).await, Invalid);
    fails(commit(room, &edited(record(0, 4, &[(2, 3)]), &[edit(1, &[(0, Some("[-]"))], 1)])).await, Invalid);
    assert_eq!(everything(room).await, before);
    commit(room, &record(0, 4, &[(1, 1), (3, 3)])).await.unwrap();
    assert_eq!(keys(room).await, [0, 2]);
}

pub(super) async fn instructions_and_pins_are_not_shortened(room: &Room<'_>) {
    append(room, "t", 0, &[instruction(0), user(1), pinned(2)]).await.unwrap();
    let before = everything(room).await;
    for seq in [0, 2] {
        let record = edited(record(0, 3, &[]), &[edit(seq, &[(0, Some("[-]"))], 1)]);
        fails(commit(room, &record).await, Invalid);
    }
    assert_eq!(everything(room).await, before);
    commit(room, &edited(record(0, 3, &[]), &[edit(1, &[(0, Some("[-]"))], 1)])).await.unwrap();
}

pub(super) async fn a_record_that_takes_back_hides_instructions_and_pins_too(room: &Room<'_>) {
    append(room, "t", 0, &[instruction(0), user(1), pinned(2)]).await.unwrap();
    append(room, "later", 3, &[user(3)]).await.unwrap();
    // The record was made from the first three messages.
    assert_eq!(commit(room, &record(0, 3, &[(0, 2)])).await.unwrap(), Revision(1));
    assert_eq!(keys(room).await, [3]);
    uncompact(room, 1).await.unwrap();
    assert_eq!(load(room).await.live.len(), 4);
    // Messages that become visible again keep their protection.
    fails(commit(room, &record(2, 4, &[(0, 1)])).await, Invalid);
    fails(commit(room, &record(2, 4, &[(0, 0), (3, 3)])).await, Invalid);
    assert_eq!(commit(room, &record(2, 4, &[(2, 3)])).await.unwrap(), Revision(3));
    assert_eq!(keys(room).await, [0, 1]);
}

pub(super) async fn an_answer_that_came_later_is_not_taken_back_with_a_pin(room: &Room<'_>) {
    let entries = [calls(0, &["a"]), pinned(1), user(2), late(answer(0, "a")), user(4)];
    append(room, "t", 0, &entries).await.unwrap();
    let mut left = record(1, 5, &[(1, 2)]);
    fails(commit(room, &left).await, Invalid);
    left.hides = vec![range(1, 2), range(4, 4)];
    commit(room, &left).await.unwrap();
    assert_eq!(keys(room).await, [0, 3]);
    // A later summary counts as a remaining message, too.
    uncompact(room, 2).await.unwrap();
    commit(room, &summarized(record(3, 5, &[(2, 2), (4, 4)]), &[&[(2, 2)], &[(4, 4)]])).await.unwrap();
    fails(commit(room, &record(4, 5, &[(1, 2)])).await, Invalid);
    commit(room, &record(4, 5, &[(1, 2), (4, 4)])).await.unwrap();
    assert_eq!(keys(room).await, [0, 3]);
}
