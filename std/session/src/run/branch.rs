//! Branches: a session that begins with the messages of another one.

use epitome_core::Seq;

use super::RunSettings;
use super::compact::compacted_provider;
use crate::provider::fork_history;
use crate::session::{AgentSession, SessionError};

/// Makes a session from the first messages of a stored one, up to but without `at`. Both sessions go on independently.
/// A summary that was made when the session had no more than these messages is copied too. Messages that a later summary
/// hides are visible again.
///
/// The history is the one that a run would compact, and [`Compactions::history`](super::Compactions::history) has the
/// numbers of its messages. The new session has an id of its own. Other data of the providers is not copied: their
/// state, memories, usage, and the logs of histories that do not load.
///
/// ```
/// # use epitome_core::Seq;
/// # use epitome_std::message::Message;
/// # use epitome_std::provider::HistoryProvider;
/// # use epitome_std::run::*;
/// # use epitome_std::session::AgentSession;
/// # futures::executor::block_on(async {
/// # let settings = RunSettings::new("helper").with_provider(HistoryProvider::in_memory())?;
/// # let mut session = AgentSession::new();
/// # let options = RunOptions::default();
/// # for question in ["Where is Rome?", "And how is it?"] {
/// #     let mut run = Run::begin(&settings, &mut session, vec![Message::user(question)], &options).await?;
/// #     let prompt = run.prompt().await?;
/// #     run.record(prompt.handle, ModelResponse::new(vec![Message::assistant("Well.")])).await?;
/// #     run.finish().await?;
/// # }
/// // The session has two questions and two answers. Another one begins with the first of each.
/// let mut other = branch(&settings, &mut session, Seq(2)).await?;
/// let mut run = Run::begin(&settings, &mut other, vec![Message::user("How old is it?")], &options).await?;
/// assert_eq!(run.prompt().await?.messages.len(), 3);
/// # Ok::<(), RunError>(())
/// # }).unwrap();
/// ```
///
/// # Errors
/// `Invalid` if `at` is 0, beyond the last message or inside a group, if there is no history provider, or as
/// [`compact`](super::compact()). `NotFound` if the session has no messages yet. Otherwise as
/// [`fork`](crate::history::HistoryStoreExt::fork).
///
/// # Cancel safety
/// A part of the new session may be left in the store, under an unknown id.
pub async fn branch(
    settings: &RunSettings,
    session: &mut AgentSession,
    at: Seq,
) -> Result<AgentSession, SessionError> {
    let provider = compacted_provider(settings, session)?;
    let provider = provider.ok_or_else(|| SessionError::invalid("there is no history provider"))?;
    let mut other = AgentSession::with_id_source(&*settings.ids);
    fork_history(&provider, session, at, &mut other).await?;
    Ok(other)
}
