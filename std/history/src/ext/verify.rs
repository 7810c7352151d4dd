//! Verification of a session against its recorded operations.

use epitome_core::Seq;

use super::events::{conflict, copy};
use super::{Exported, PAGE, sessions};
use crate::{HistoryStore, MemoryStore, SessionId, SessionInfo, StoreError, StoreErrorKind};

pub(super) async fn verify<S: HistoryStore + ?Sized>(
    store: &S,
    session: &SessionId,
) -> Result<Exported, StoreError> {
    let again = MemoryStore::new();
    let done = copy("verify", store, session, &again, session).await.map_err(|error| match error.kind() {
        StoreErrorKind::Invalid | StoreErrorKind::Pruned => {
            corrupt("what was done in it cannot be done again").with_source(error)
        }
        _ => error,
    })?;
    let (stored, expected) = (store.load(session).await?, again.load(session).await?);
    stored.check_texts("verify")?;
    if (stored.head, stored.revision) != (expected.head, expected.revision) {
        return Err(conflict("verify: the session was changed meanwhile; begin again"));
    }
    let differ = stored.live.iter().zip(&expected.live).find(|(one, other)| one != other);
    if let Some((live, _)) = differ {
        return Err(corrupt(&format!("what is visible at {} is not what was left there", live.key)));
    }
    if stored.live.len() != expected.live.len() {
        return Err(corrupt("more is visible, or less, than was left"));
    }
    if stored.unanswered != expected.unanswered {
        return Err(corrupt("other hidden calls wait for answers than have none"));
    }
    if info(store, session).await? != info(&again, session).await? {
        return Err(corrupt("the list says something else"));
    }
    compare_logs(store, &again, session).await?;
    Ok(done)
}

async fn compare_logs<S: HistoryStore + ?Sized>(
    store: &S,
    again: &MemoryStore,
    session: &SessionId,
) -> Result<(), StoreError> {
    let mut next = Some(Seq(0));
    while let Some(first) = next {
        let (stored, expected) = (
            store.log(session, first..Seq(u64::MAX), PAGE).await?,
            again.log(session, first..Seq(u64::MAX), PAGE).await?,
        );
        let mut both = stored.messages.iter().zip(&expected.messages);
        if let Some((logged, _)) = both.find(|(one, other)| one != other) {
            return Err(corrupt(&format!("message {} of the log is not as it was left", logged.seq)));
        }
        if stored.next != expected.next || stored.messages.len() != expected.messages.len() {
            return Err(corrupt(&format!("the log has another length behind {first}")));
        }
        next = stored.next;
    }
    Ok(())
}

/// The entry of the session in the list. Reads no entries of other sessions, because one of them may be damaged.
async fn info<S: HistoryStore + ?Sized>(
    store: &S,
    session: &SessionId,
) -> Result<Option<SessionInfo>, StoreError> {
    let mut after = just_before(session);
    loop {
        let page = sessions(store, after.as_ref(), 1).await?;
        match page.into_iter().next() {
            Some(found) if found.id < *session => after = Some(found.id),
            found => return Ok(found.filter(|found| found.id == *session)),
        }
    }
}

/// A name shortly before the name of a session; `None` if no name comes before it.
fn just_before(session: &SessionId) -> Option<SessionId> {
    let mut name = session.as_str().to_owned();
    let last = name.pop()?;
    let lower = u32::from(last).checked_sub(1).and_then(char::from_u32);
    // Postgres accepts no text that contains a zero byte.
    if let Some(lower) = lower.filter(|lower| *lower != '\0') {
        name.extend([lower, char::MAX]);
    }
    (!name.is_empty()).then(|| SessionId::new(name))
}

fn corrupt(what: &str) -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, format!("verify: {what}"))
}

#[cfg(test)]
mod tests {
    use epitome_core::{Basis, Tokens, Turn};
    use epitome_message::Message;
    use futures::executor::block_on;

    use super::*;
    use crate::{Append, AppendToken, Entry, TokenCount};

    #[test]
    fn the_entry_of_a_session_is_found_among_names_beside_it() {
        let store = MemoryStore::new();
        let names =
            ["a", "a\u{10FFFF}", "a\u{10FFFF}b", "b", "ba", "\u{1}", "\u{E000}", "\u{D7FF}z", "\u{10FFFF}"];
        for name in names {
            let count = TokenCount::new(Tokens(3), Basis::Estimated, "default".into());
            let entry = Entry::new(Message::user("Hi"), Seq(0), Turn(1), count);
            let token = AppendToken::new("first");
            block_on(store.append(&SessionId::new(name), &Append::new(&token, Seq(0), &[entry]))).unwrap();
        }
        for name in names {
            let session = SessionId::new(name);
            assert!(just_before(&session).is_none_or(|before| before < session), "{name:?}");
            let found = block_on(info(&store, &session)).unwrap();
            assert_eq!(found.map(|info| info.id), Some(session));
        }
        for name in ["", "\0", "A", "aa", "c", "\u{E001}"] {
            assert_eq!(block_on(info(&store, &SessionId::new(name))).unwrap(), None, "{name:?}");
        }
    }
}
