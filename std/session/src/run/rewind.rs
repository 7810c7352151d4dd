//! Rewinds of a stored session, between runs. Undoing compactions is in `compactions`.

use epitome_core::{Revision, Seq};

use super::RunSettings;
use super::compact::stored_history;
use crate::session::{AgentSession, SessionError};

/// Takes back the message `at` of a stored session, and all messages after it: see
/// [`rewind`](crate::history::HistoryStoreExt::rewind). The history is the one that a run would compact, and
/// [`Compactions::history`](super::Compactions::history) has the numbers of its messages. The next run continues from
/// there; [`Compactions::undo`](super::Compactions::undo) shows the messages again. Other data of the providers stays
/// as it is: state, memories, usage.
///
/// ```
/// # use epitome_core::Seq;
/// # use epitome_std::message::Message;
/// # use epitome_std::provider::{InMemoryHistoryProvider, Providers};
/// # use epitome_std::run::*;
/// # use epitome_std::session::AgentSession;
/// # futures::executor::block_on(async {
/// # let mut providers = Providers::default();
/// # providers.push(InMemoryHistoryProvider::default()).unwrap();
/// # let settings = RunSettings::new("helper").with_providers(providers);
/// # let mut session = AgentSession::new();
/// # let options = RunOptions::default();
/// # for question in ["Where is Rome?", "And how is it?"] {
/// #     let mut run = Run::begin(&settings, &mut session, vec![Message::user(question)], &options).await?;
/// #     let prompt = run.prompt().await?;
/// #     run.record(prompt.handle, ModelResponse::new(vec![Message::assistant("Well.")])).await?;
/// #     run.finish().await?;
/// # }
/// // The session has two questions and two answers. The second question was not clear.
/// rewind(&settings, &mut session, Seq(2)).await?;
/// let mut run = Run::begin(&settings, &mut session, vec![Message::user("How old is it?")], &options).await?;
/// assert_eq!(run.prompt().await?.messages.len(), 3);
/// # Ok::<(), RunError>(())
/// # }).unwrap();
/// ```
///
/// # Errors
/// `Invalid` if there is no message `at`, or if the rewind is not possible there: the text names a possible place.
/// `Invalid` also as [`compact`](super::compact()), and if there is no history provider. `NotFound` if the session has
/// no messages yet. Otherwise the error of the store.
///
/// # Cancel safety
/// The messages are taken back or not. The same call again makes sure.
pub async fn rewind(
    settings: &RunSettings,
    session: &mut AgentSession,
    at: Seq,
) -> Result<Revision, SessionError> {
    let history = stored_history(settings, session).await?;
    let mut history = history.ok_or_else(|| SessionError::invalid("there is no history provider"))?;
    let made = history.rewind(at).await?;
    // A call that was dropped may have taken the messages back without this note.
    session.note_compaction();
    Ok(made)
}
