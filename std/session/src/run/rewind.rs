//! Taking back what was said in a stored session, between runs. What compactions did is in `compactions`.

use epitome_core::{Revision, Seq};

use super::RunSettings;
use super::compact::stored_history;
use crate::session::{AgentSession, SessionError};

/// Takes back the message `at` of what is stored of a session, and all that came after it: see
/// [`rewind`](crate::history::HistoryStoreExt::rewind). The history is the one that a run would compact, and
/// [`Compactions::history`](super::Compactions::history) has the numbers of its messages. The next run goes on from there;
/// [`Compactions::undo`](super::Compactions::undo) shows it again. What providers keep of the session stays as it is: the
/// state, memories, usage.
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
/// `Invalid` if there is no such message, or not in this way: the text says where it can be done; and as
/// [`compact`](super::compact()), and if there is no history provider. `NotFound` if nothing was said yet. Otherwise what the store
/// says.
///
/// # Cancel safety
/// It is taken back, or is not; the same call again makes sure.
pub async fn rewind(
    settings: &RunSettings,
    session: &mut AgentSession,
    at: Seq,
) -> Result<Revision, SessionError> {
    let history = stored_history(settings, session).await?;
    let mut history = history.ok_or_else(|| SessionError::invalid("there is no history provider"))?;
    let made = history.rewind(at).await?;
    // Also where a call that was dropped has taken it back: nobody has noted that.
    session.note_compaction();
    Ok(made)
}
