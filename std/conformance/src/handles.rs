//! Scenarios of several handles on one session: threads, processes, and conflicts.

use epitome_core::{Revision, Seq};
use epitome_history::StoreErrorKind::{Conflict, NotFound};
use futures::future::{join, join_all};

use super::support::{Room, append, commit, fails, fill, keys, load, log, record, records, user};

pub(super) async fn two_handles_see_one_session(room: &Room<'_>) {
    let other = room.another().await;
    fill(room, 3).await;
    assert_eq!(keys(&other).await, [0, 1, 2]);
    commit(&other, &record(0, 3, &[(0, 0)])).await.unwrap();
    assert_eq!(keys(room).await, [1, 2]);
    append(&other, "t", 3, &[user(3)]).await.unwrap();
    append(room, "u", 4, &[user(4)]).await.unwrap();
    assert_eq!((load(room).await, log(room).await), (load(&other).await, log(&other).await));
    assert_eq!(load(room).await.head, Seq(5));
}

pub(super) async fn a_handle_that_is_opened_later_finds_everything(room: &Room<'_>) {
    fill(room, 4).await;
    commit(room, &record(0, 4, &[(1, 2)])).await.unwrap();
    let other = room.another().await;
    assert_eq!((load(room).await, log(room).await), (load(&other).await, log(&other).await));
    assert_eq!(records(room).await, records(&other).await);
    assert_eq!(append(&other, "fill", 0, &[user(0), user(1), user(2), user(3)]).await.unwrap().head, Seq(4));
    assert_eq!(commit(&other, &record(0, 4, &[(1, 2)])).await.unwrap(), Revision(1));
}

pub(super) async fn of_two_appends_at_one_head_one_succeeds(room: &Room<'_>) {
    let other = room.another().await;
    for head in 0..20 {
        let (entries, tokens) = ([user(head)], [format!("one {head}"), format!("other {head}")]);
        let both = join(append(room, &tokens[0], head, &entries), append(&other, &tokens[1], head, &entries));
        let (failed, done): (Vec<_>, Vec<_>) =
            <[_; 2]>::from(both.await).into_iter().partition(Result::is_err);
        assert_eq!((done.len(), failed.len()), (1, 1));
        for result in failed {
            fails(result, Conflict);
        }
        assert_eq!(log(room).await.len() as u64, head + 1);
    }
    assert_eq!(load(room).await, load(&other).await);
}

pub(super) async fn of_two_commits_on_one_revision_one_succeeds(room: &Room<'_>) {
    let other = room.another().await;
    fill(room, 40).await;
    for revision in 0..20 {
        let (first, second) = (2 * revision, 2 * revision + 1);
        let one = record(revision, 40, &[(first, first)]);
        let another = record(revision, 40, &[(second, second)]);
        let both = join(commit(room, &one), commit(&other, &another)).await;
        match both {
            (Ok(made), lost) => {
                assert_eq!(made, Revision(revision + 1));
                fails(lost, Conflict);
            }
            (lost, won) => {
                assert_eq!(won.unwrap(), Revision(revision + 1));
                fails(lost, Conflict);
            }
        }
        assert_eq!(keys(room).await.len() as u64, 39 - revision);
    }
    assert_eq!((load(room).await, records(room).await), (load(&other).await, records(&other).await));
}

pub(super) async fn an_append_and_a_commit_at_once_both_succeed(room: &Room<'_>) {
    let other = room.another().await;
    fill(room, 20).await;
    for turn in 0..20 {
        let (entries, hides) = ([user(20 + turn)], record(turn, 20 + turn, &[(turn, turn)]));
        let token = format!("{turn}");
        let both = join(append(room, &token, 20 + turn, &entries), commit(&other, &hides)).await;
        assert_eq!((both.0.unwrap().head, both.1.unwrap()), (Seq(21 + turn), Revision(turn + 1)));
    }
    assert_eq!(keys(room).await, (20..40).collect::<Vec<_>>());
}

pub(super) async fn one_token_on_many_handles_is_appended_once(room: &Room<'_>) {
    let others = join_all((0..4).map(|_| room.another())).await;
    let entries = [user(0), user(1)];
    let appended = join_all(others.iter().map(|other| append(other, "t", 0, &entries))).await;
    for answer in appended {
        assert_eq!(answer.unwrap().head, Seq(2));
    }
    assert_eq!(keys(room).await, [0, 1]);
}

pub(super) async fn one_record_on_many_handles_is_committed_once(room: &Room<'_>) {
    let others = join_all((0..4).map(|_| room.another())).await;
    fill(room, 3).await;
    let hides = record(0, 3, &[(0, 1)]);
    for made in join_all(others.iter().map(|other| commit(other, &hides))).await {
        assert_eq!(made.unwrap(), Revision(1));
    }
    assert_eq!((keys(room).await, records(room).await.len()), (vec![2], 1));
}

pub(super) async fn what_another_handle_deleted_is_gone(room: &Room<'_>) {
    let other = room.another().await;
    fill(room, 5).await;
    commit(room, &record(0, 5, &[(0, 3)])).await.unwrap();
    assert_eq!(keys(&other).await, [4]);
    assert!(room.delete(&room.session()).await.unwrap());
    fails(other.load(&other.session()).await, NotFound);
    assert!(!other.delete(&other.session()).await.unwrap());
    // The other handle has also forgotten the deleted session when its id is used again.
    append(room, "fill", 0, &[user(0)]).await.unwrap();
    assert_eq!((keys(&other).await, load(&other).await.revision), (vec![0], Revision(0)));
    append(&other, "t", 1, &[user(1)]).await.unwrap();
    assert_eq!(keys(room).await, [0, 1]);
}
