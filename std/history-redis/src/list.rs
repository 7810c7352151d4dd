//! The list of sessions.

use ::redis::cmd;
use epitome_core::{Revision, Seq};
use epitome_history::rules::corrupt;
use epitome_history::{SessionId, SessionInfo, StoreError, Timestamp};
use futures::future::try_join_all;

use super::Shared;
use super::keys::{BUCKETS, Key};
use super::script::{Args, Call, SCRIPTS};

/// At most `limit` sessions after `after`, in the order of their ids.
pub(super) async fn list(
    store: &Shared,
    after: Option<&SessionId>,
    limit: u32,
) -> Result<Vec<SessionInfo>, StoreError> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let (mut infos, mut after) = (Vec::new(), after.cloned());
    while infos.len() < limit {
        let wanted = limit.saturating_sub(infos.len()).min(PAGE_SESSIONS_MAX);
        let ids = page(store, after.as_ref(), wanted).await?;
        let Some(last) = ids.last() else { break };
        after = Some(last.clone());
        let found = try_join_all(ids.iter().map(|id| info(store, id))).await?;
        infos.extend(found.into_iter().flatten());
    }
    Ok(infos)
}

/// At most `limit` ids; at least one, if there is any.
///
/// Each part of the index returns some ids in its order. Some parts may have more ids than they returned. The result is
/// complete up to the smallest of the last ids of these parts.
async fn page(store: &Shared, after: Option<&SessionId>, limit: usize) -> Result<Vec<SessionId>, StoreError> {
    let share = limit.div_ceil(usize::from(BUCKETS)).saturating_add(SHARE_SPARE).min(limit);
    let from = after.map_or(b"-".to_vec(), |after| [b"(", after.as_str().as_bytes()].concat());
    let parts = store.prefix.indexes().map(|index| {
        let mut command = cmd("ZRANGEBYLEX");
        command.arg(index).arg(&from).arg("+").arg("LIMIT").arg(0).arg(share);
        async move { store.connections.ask::<Vec<Vec<u8>>>("list", &command).await }
    });
    let parts = try_join_all(parts).await?;
    let full = parts.iter().filter(|part| part.len() >= share);
    let bound = full.filter_map(|part| part.last()).min().cloned();
    let mut ids: Vec<Vec<u8>> =
        parts.into_iter().flatten().filter(|id| bound.as_ref().is_none_or(|bound| id <= bound)).collect();
    ids.sort_unstable();
    ids.truncate(limit);
    let id = |id| {
        String::from_utf8(id).map(SessionId::new).map_err(|_| corrupt("list: a session's id is no text"))
    };
    ids.into_iter().map(id).collect()
}

/// The entry of a session in the list. If the session has expired, removes it from the index and returns `None`.
async fn info(store: &Shared, id: &SessionId) -> Result<Option<SessionInfo>, StoreError> {
    let keys = store.prefix.keys(id);
    let mut command = cmd("HMGET");
    command.arg(keys.one(Key::Session)).arg(&FIELDS);
    let fields: [Option<u64>; 6] = store.connections.ask("list", &command).await?;
    let [Some(head), Some(revision), Some(live_messages), Some(live_tokens), created, appended] = fields
    else {
        let args = Args::of([id.as_str().to_owned()]);
        let call = Call { script: &SCRIPTS.forget, keys: &keys, args };
        store.connections.call::<()>("list", &call).await?;
        return Ok(None);
    };
    let mut info = SessionInfo::new(id.clone());
    (info.head, info.revision) = (Seq(head), Revision(revision));
    (info.live_messages, info.live_tokens) = (live_messages, live_tokens);
    (info.created, info.appended) = (created.map(Timestamp), appended.map(Timestamp));
    Ok(Some(info))
}

/// The last two fields exist only if a time is known.
const FIELDS: [&str; 6] = ["head", "revision", "live_messages", "live_tokens", "created", "appended"];

/// Number of ids that are processed together. It makes the fixed number of requests per page worthwhile.
pub(super) const PAGE_SESSIONS_MAX: usize = 1_000;

/// Additional ids that are requested from each part of the index, because parts are not quite equal in size.
const SHARE_SPARE: usize = 8;
