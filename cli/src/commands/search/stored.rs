//! A search with the index of a store.

use std::collections::HashSet;

use epitome::history::{FoundMessage, LogSearch, SessionId, Timestamp};
use epitome::search::{nearest_piece, said, text_of};
use futures::executor::block_on;

use super::{Looked, Shown, redacted};
use crate::archive::{Archive, Session};
use crate::args::SearchArgs;
use crate::commands::session::store::Store;
use crate::failure::{Failure, Result, code};
use crate::redact::Redactor;

/// Shows the nearest messages of the store. Of messages with equal texts only the nearest is shown.
pub(super) fn search(
    args: &SearchArgs,
    archive: &Archive,
    store: &Store,
    (query, since): (&str, Option<Timestamp>),
    mut redactor: Option<&mut Redactor>,
) -> Result<(Vec<Shown>, String)> {
    let mut search = LogSearch::new(query);
    (search.role, search.since) = (args.role(), since);
    search.tool = args.tool.as_deref().map(Into::into);
    let only = args.session.as_ref().map(|id| archive.named(id)).transpose()?;
    let sessions: Vec<&Session> = only.map_or_else(|| archive.sessions.iter().collect(), |only| vec![only]);
    if let Some(only) = only {
        search = search.in_session(SessionId::new(&*only.id));
    }
    let limit = args.limit.get();
    let mut wanted = u32::try_from(limit).unwrap_or(u32::MAX);
    let found = loop {
        wanted = wanted.saturating_mul(REPEATED);
        let mut found = block_on(store.search(&search.clone().with_limit(wanted)))?;
        let is_all = u32::try_from(found.len()).is_ok_and(|count| count < wanted) || wanted >= LOOKED_AT_MAX;
        let mut known = HashSet::new();
        found.retain(|found| known.insert(said(&found.logged.entry.message)));
        if is_all || found.len() >= limit {
            found.truncate(limit);
            break found;
        }
    };
    let mut shown = Vec::new();
    for FoundMessage { session, logged, .. } in found {
        let Some(session) = sessions.iter().find(|own| own.id == session.as_str()) else { continue };
        let message = logged.entry.message;
        let (role, whole) = (message.role(), text_of(&redacted(message, redactor.as_deref_mut())));
        let piece = nearest_piece(&whole, query);
        shown.push(Shown::new(session, logged.seq.0, role, whole, piece));
    }
    let mut looked = Looked::default();
    for session in &sessions {
        looked.at(session.damage().map_or(Ok(0), |damage| Err(Failure::new(code::IO, damage))));
    }
    let messages = sessions.iter().map(|session| session.stored()).sum();
    let about = looked.about(args, shown.len(), messages)?;
    Ok((shown, about))
}

/// Factor of searched messages over shown messages, because copies of a session have equal messages.
const REPEATED: u32 = 4;

/// Maximum number of messages to search for, approximately. All of them may have equal texts.
const LOOKED_AT_MAX: u32 = 4_096;
