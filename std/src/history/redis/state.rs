//! Keeping a session's state: three fields of the hash that has its counters.

use epitome_core::Seq;

use super::Shared;
use super::keys::{Key, SessionKeys};
use super::script::{Args, Call, SCRIPTS};
use crate::history::rules::{self, corrupt};
use crate::history::{KeptState, OwnedState, StateOutcome, StateRevision, StoreError};

/// What scripts get of a state: what it was made from, the revision that it would have, and its text.
pub(super) fn texts(state: Option<&OwnedState>) -> [String; 3] {
    state.map_or_else(Default::default, |state| {
        [state.made_from.to_string(), state.made_from.next().to_string(), state.text.as_ref().to_owned()]
    })
}

/// What a script says has become of `state`.
pub(super) fn outcome(word: &str, state: &OwnedState) -> Result<StateOutcome, StoreError> {
    match word {
        "kept" => Ok(StateOutcome::Kept(state.made_from.next())),
        "stale" => Ok(StateOutcome::Stale),
        _ => Err(corrupt("save_state: the script has another answer")),
    }
}

pub(super) async fn save(
    store: &Shared,
    keys: &SessionKeys,
    state: &OwnedState,
) -> Result<StateOutcome, StoreError> {
    let mut args = Args::of([store.ttl.clone()]);
    args.extend(texts(Some(state)));
    let call = Call { script: &SCRIPTS.save_state, keys, args };
    let word: String = store.connections.call("save_state", &call).await?;
    match word.as_str() {
        "" => Err(rules::not_found("save_state")),
        word => outcome(word, state),
    }
}

/// The state that is kept.
pub(super) async fn find(store: &Shared, keys: &SessionKeys) -> Result<Option<KeptState>, StoreError> {
    let mut command = ::redis::cmd("HMGET");
    command.arg(keys.one(Key::Session)).arg(&["head", "state_revision", "state_head", "state"]);
    let (session, revision, head, text): Fields = store.connections.ask("state", &command).await?;
    session.ok_or_else(|| rules::not_found("state"))?;
    let (Some(revision), Some(head), Some(text)) = (revision, head, text) else { return Ok(None) };
    Ok(Some(KeptState::new(StateRevision(revision), Seq(head), text.into())))
}

type Fields = (Option<u64>, Option<u64>, Option<u64>, Option<String>);
