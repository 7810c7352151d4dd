//! Decisions of a caller before and after a compaction.

use core::fmt;
use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;

use super::{CompactionCx, Compactor};
use crate::history::CompactionRecord;
use crate::message::Str;
use crate::session::SessionError;

/// Decides before a compaction whether it is made, and supplies a text that the model reads after it.
///
/// Set one with [`CompactionOptions::with_hook`](super::CompactionOptions::with_hook): for all runs of an agent, for one run, or for one
/// compaction on demand. Both methods have a default that changes nothing.
///
/// Hooks are not called for a session whose history a service keeps.
///
/// *Cancel safety*: dropping a future of the hook leaves the history as it was.
///
/// ```
/// use std::sync::Arc;
/// use async_trait::async_trait;
/// use epitome_std::compaction::{CompactionCx, CompactionHook, CompactionOptions};
/// use epitome_std::history::CompactionRecord;
/// use epitome_std::message::Str;
/// use epitome_std::session::SessionError;
///
/// /// Shows the plan of the work again after each compaction.
/// #[derive(Debug)]
/// struct ReadPlanAgain;
///
/// #[async_trait]
/// impl CompactionHook for ReadPlanAgain {
///     async fn reload(
///         &self,
///         _: &CompactionCx<'_>,
///         _: &CompactionRecord,
///         tokens_max: u64,
///     ) -> Result<Option<Str>, SessionError> {
///         let plan = "1. Read the parser. 2. Mend the lexer.";
///         Ok((tokens_max > 20).then(|| plan.into()))
///     }
/// }
///
/// let options = CompactionOptions::default().with_hook(Arc::new(ReadPlanAgain));
/// assert!(options.hook().is_some());
/// ```
#[async_trait]
pub trait CompactionHook: Send + Sync + fmt::Debug {
    /// Called when a compaction is due or was asked for, before any planning. Work that a compactor has begun in the
    /// background was planned before; it is used only if the hook allows it.
    ///
    /// # Errors
    /// The compaction fails with the error of the hook.
    async fn before(&self, _cx: &CompactionCx<'_>) -> Result<BeforeCompaction, SessionError> {
        Ok(BeforeCompaction::Proceed)
    }

    /// Called when `record` is ready and not yet committed. Returns a text of at most `tokens_max` tokens that the model reads from
    /// then on, for example the files that it works on. A longer text is left out.
    ///
    /// `tokens_max` is a quarter of the tokens that the compaction frees, or less if the request would come near the
    /// next compaction.
    ///
    /// The text becomes a part of `record`, after a line that marks it ([`RELOADED`](crate::history::RELOADED)): a part
    /// of its last summary, or a text in the place of the last messages that it hides. Undoing the compaction removes
    /// the text too. The text of the previous compaction goes, except a text beside a summary that stays. A later
    /// summary never treats the text as a message of the conversation. A record that only shortens messages has no
    /// place for a text. A record with a summary that is not text has none either. After a conflict with another writer
    /// the hook is called again.
    ///
    /// The engine of `epitome-compactors` calls this method. The function of a
    /// [`MessagesCompactor`](super::MessagesCompactor) returns such a text itself.
    ///
    /// # Errors
    /// The compaction fails with the error of the hook, and the history is as it was.
    async fn reload(
        &self,
        _cx: &CompactionCx<'_>,
        _record: &CompactionRecord,
        _tokens_max: u64,
    ) -> Result<Option<Str>, SessionError> {
        Ok(None)
    }
}

/// The decision of a [`CompactionHook`] before a compaction.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum BeforeCompaction {
    /// The compaction is made.
    #[default]
    Proceed,
    /// The compaction is not made, for this reason. The outcome is
    /// [`CompactionOutcome::Unchanged`](super::CompactionOutcome::Unchanged) with the reason. The next occasion calls the hook again.
    Veto(Cow<'static, str>),
    /// Another compactor makes the compaction.
    Replace(Arc<dyn Compactor>),
}
