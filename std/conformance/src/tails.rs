//! Scenarios of the last turn, and of the answer to the append under a token.

use epitome_core::{Seq, Turn};
use epitome_history::{AppendToken, Entry, StoreErrorKind};

use super::support::{Room, answer, append, calls, late, orphan, record, summarized, unanswered, user};

fn in_turn(turn: u32, mut entry: Entry) -> Entry {
    entry.turn = Turn(turn);
    entry
}

/// The keys of the tail. Checks that the tail equals the last turn of the loaded session.
async fn tail(room: &Room<'_>) -> Vec<u64> {
    let tail = room.tail(&room.session()).await.unwrap();
    let loaded = room.load(&room.session()).await.unwrap();
    assert_eq!(tail, loaded.into_last_turn());
    tail.live.iter().map(|live| live.key.0).collect()
}

pub(super) async fn the_tail_is_the_last_turn(room: &Room<'_>) {
    let first = [user(0), calls(1, &["a", "b"]), answer(1, "a")];
    append(room, "1", 0, &first).await.unwrap();
    assert_eq!(tail(room).await, [0, 1, 2]);
    append(room, "2", 3, &[in_turn(2, user(3)), in_turn(2, calls(4, &["c"]))]).await.unwrap();
    assert_eq!(tail(room).await, [3, 4]);
    // A late answer appears within the last turn, but does not belong to it; nor does an orphan.
    append(room, "3", 5, &[late(answer(1, "b")), orphan(in_turn(2, user(6)))]).await.unwrap();
    assert_eq!(tail(room).await, [3, 4]);
    append(room, "4", 7, &[in_turn(2, answer(4, "c"))]).await.unwrap();
    assert_eq!(tail(room).await, [3, 4, 7]);
    // Hidden messages are not in the tail, and a summary has the turn of the messages that it covers.
    let revision = room.load(&room.session()).await.unwrap().revision.0;
    let hides = summarized(record(revision, 8, &[(0, 2), (5, 5)]), &[&[(0, 2), (5, 5)]]);
    room.commit(&room.session(), &hides).await.unwrap();
    assert_eq!(tail(room).await, [3, 4, 7]);
    let mut hides = summarized(record(revision + 1, 8, &[(3, 4), (7, 7)]), &[&[(3, 4), (7, 7)]]);
    hides.unanswered = vec![unanswered("x", 4, 0)];
    room.commit(&room.session(), &hides).await.unwrap();
    assert_eq!(tail(room).await, [3]);
}

pub(super) async fn tails_of_nothing(room: &Room<'_>) {
    let missing = room.tail(&room.session()).await.unwrap_err();
    assert_eq!(missing.kind(), StoreErrorKind::NotFound);
    append(room, "1", 0, &[orphan(user(0))]).await.unwrap();
    assert!(tail(room).await.is_empty());
    assert_eq!(room.tail(&room.session()).await.unwrap().head, Seq(1));
}

pub(super) async fn a_token_tells_what_it_appended(room: &Room<'_>) {
    let find = async |token| room.appended(&room.session(), &AppendToken::new(token)).await.unwrap();
    assert_eq!(find("1").await, None, "there is no session yet");
    let first = append(room, "1", 0, &[user(0), user(1)]).await.unwrap();
    append(room, "2", 2, &[user(2)]).await.unwrap();
    assert_eq!(find("1").await, Some(first));
    assert_eq!(find("3").await, None);
}
