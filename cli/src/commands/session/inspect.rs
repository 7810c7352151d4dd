//! `epitome session inspect`: the sessions of a store in a browser, as they grow. The server runs on this machine and
//! only reads.

mod answers;
mod changes;
mod guard;
mod page;

use core::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::middleware;
use axum::response::{Html, IntoResponse, Json, Response};
use axum::routing::get;
use epitome::history::SessionId;
use futures::executor::block_on;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::spawn_blocking;

use answers::Inspector;
use guard::Guard;

use super::copy::exists;
use super::store::{Access, open, shown};
use crate::args::{InspectArgs, OneSessionArgs};
use crate::failure::{ExitCode, Failure, Result, code};
use crate::output;
use crate::redact::Redactor;

pub(super) fn run(args: &InspectArgs) -> Result<ExitCode> {
    // Reads the list of secrets once, and checks before the first request that the session exists.
    let redactor = Redactor::new(&args.redact)?.map(Mutex::new);
    let store = open(&args.store, Access::Read)?;
    if let Some(session) = &args.session {
        let session = OneSessionArgs { store: args.store.clone(), session: session.clone(), json: false };
        exists(&session, block_on(store.tail(&SessionId::new(&*session.session))))?;
    }
    let name = shown(&args.store);
    let inspector = Inspector { args: args.store.clone(), store, redactor };
    let failed = |error: std::io::Error| Failure::new(code::IO, error.to_string()).during("inspect");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port))
            .await
            .map_err(|error| failed(error).advise("--port 0 takes a port that is free"))?;
        let guard = Guard::new(listener.local_addr().map_err(failed)?.port())?;
        let place =
            args.session.as_deref().map(|id| format!("#{}", utf8_percent_encode(id, NON_ALPHANUMERIC)));
        output::say(format!("{}{}", guard.address(), place.unwrap_or_default()))?;
        output::tell(format!(
            "epitome: open this address in a browser: it shows {name}, and changes nothing. Ctrl-C ends it."
        ));
        axum::serve(listener, router(inspector, guard)).await.map_err(failed)
    })?;
    Ok(ExitCode::SUCCESS)
}

fn router(inspector: Inspector, guard: Guard) -> Router {
    let guard = Arc::new(guard);
    Router::new()
        .route("/{token}/", get(async || Html(page::html())))
        .route("/{token}/sessions", get(sessions))
        .route("/{token}/head", get(head))
        .route("/{token}/session", get(session))
        .route("/{token}/messages", get(messages))
        .route("/{token}/message", get(message))
        .route("/{token}/difference", get(difference))
        .route("/{token}/found", get(found))
        .layer(middleware::from_fn_with_state(guard, guard::check))
        .with_state(Arc::new(inspector))
}

type Shared = State<Arc<Inspector>>;

#[derive(Debug, Deserialize)]
struct Of {
    session: String,
}

#[derive(Debug, Deserialize)]
struct At {
    session: String,
    /// The number of a message in the log.
    number: u64,
}

#[derive(Debug, Deserialize)]
struct Between {
    session: String,
    from: u64,
    to: u64,
}

#[derive(Debug, Deserialize)]
struct Words {
    session: String,
    words: String,
}

async fn sessions(inspector: Shared) -> Response {
    answer(inspector, Inspector::sessions).await
}

async fn head(inspector: Shared, Query(Of { session }): Query<Of>) -> Response {
    answer(inspector, move |inspector| inspector.head(&session)).await
}

async fn session(inspector: Shared, Query(Of { session }): Query<Of>) -> Response {
    answer(inspector, move |inspector| inspector.session(&session)).await
}

async fn messages(inspector: Shared, Query(At { session, number }): Query<At>) -> Response {
    answer(inspector, move |inspector| inspector.messages(&session, number)).await
}

async fn message(inspector: Shared, Query(At { session, number }): Query<At>) -> Response {
    answer(inspector, move |inspector| inspector.message(&session, number)).await
}

async fn difference(inspector: Shared, Query(Between { session, from, to }): Query<Between>) -> Response {
    answer(inspector, move |inspector| inspector.difference(&session, from, to)).await
}

async fn found(inspector: Shared, Query(Words { session, words }): Query<Words>) -> Response {
    answer(inspector, move |inspector| inspector.found(&session, &words)).await
}

/// The answer as JSON. The store is read on a thread of its own.
async fn answer<T: Serialize + Send + 'static>(
    State(inspector): Shared,
    ask: impl FnOnce(&Inspector) -> Result<T> + Send + 'static,
) -> Response {
    let answered =
        spawn_blocking(move || ask(&inspector).map_err(|failure| inspector.without_secrets(failure)));
    // The text of a panic may repeat text of a message.
    let broken =
        |_| Err(Failure::new(code::IO, "the store could not be read: standard error of the server says why"));
    match answered.await.unwrap_or_else(broken) {
        Ok(answer) => Json(answer).into_response(),
        Err(failure) => {
            let status = match failure.code() {
                code::INPUT => StatusCode::BAD_REQUEST,
                _ => StatusCode::INTERNAL_SERVER_ERROR,
            };
            (status, Json(json!({"error": failure.message()}))).into_response()
        }
    }
}
