//! Opening stores and the sessions in them.

use std::path::Path;
use std::sync::Arc;

use epitome::core::{Seq, TokenCounter};
use epitome::std::history::{
    History, HistoryStore, Logged, SessionId, StoreError, StoreErrorKind, open_store,
};
use futures::executor::block_on;

use crate::args::{OneSessionArgs, StoreArgs};
use crate::failure::{Failure, Result};

pub(super) type Store = Arc<dyn HistoryStore>;
pub(super) type Counter = Arc<dyn TokenCounter + Send + Sync>;

/// How many rows are asked of a store at a time.
pub(super) const PAGE: u32 = 500;

/// Whether a store may be made where there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    Create,
    Refuse,
}

/// The store of this URL.
pub(super) fn open(args: &StoreArgs, missing: Missing) -> Result<Store> {
    let url = &args.store;
    let Some(path) = url.strip_prefix("sqlite:") else {
        let what = match url.split_once(':') {
            Some(("memory", _)) => "a store in memory ends with this program".to_owned(),
            // What stands after a scheme may hold a password: it is not repeated.
            Some((scheme, _)) => format!("there is no store {scheme:?}"),
            None => "the store has no kind".to_owned(),
        };
        return Err(Failure::input(format!("--store: {what}; expected sqlite:PATH")));
    };
    if missing == Missing::Refuse && !path.is_empty() && !Path::new(path).exists() {
        return Err(Failure::input(format!(
            "--store: there is no file {path}; `epitome session import` creates it"
        )));
    }
    open_store(url).map_err(|error| in_store(args, error))
}

/// What went wrong in the store, with its name.
pub(super) fn in_store(args: &StoreArgs, error: impl Into<Failure>) -> Failure {
    error.into().during(&args.store)
}

pub(super) fn id(args: &OneSessionArgs) -> SessionId {
    SessionId::new(args.session.as_str())
}

pub(super) fn no_session(args: &OneSessionArgs) -> Failure {
    let (id, store) = (&args.session, &args.store.store);
    Failure::input(format!(
        "there is no session {id:?} in {store}; `epitome session list --store {store}` lists them"
    ))
}

/// An existing session.
pub(super) fn history(store: Store, args: &OneSessionArgs, counter: Counter) -> Result<History> {
    let history =
        block_on(History::open(store, id(args), counter)).map_err(|error| in_store(&args.store, error))?;
    // A session begins with its first message.
    if history.head() == Seq(0) { Err(no_session(args)) } else { Ok(history) }
}

/// Calls `visit` with every page of an existing session's log, in order, until it wants no more.
pub(super) fn for_each_page(
    store: &Store,
    args: &OneSessionArgs,
    mut visit: impl FnMut(&[Logged]) -> Result<More>,
) -> Result<()> {
    let failed = |error: StoreError| match error.kind() {
        StoreErrorKind::NotFound => no_session(args),
        _ => in_store(&args.store, error),
    };
    let mut next = Some(Seq(0));
    while let Some(from) = next {
        let page = block_on(store.log(&id(args), from..Seq(u64::MAX), PAGE)).map_err(failed)?;
        next = page.next;
        if visit(&page.messages)? == More::Enough {
            break;
        }
    }
    Ok(())
}

/// Whether to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum More {
    Wanted,
    Enough,
}
