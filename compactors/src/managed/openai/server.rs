//! Compactions that the server made while it answered.

use async_trait::async_trait;
use std::boxed::Box;

use epitome_core::{Draft, Group, GroupKind, Protection, Strategy};
use epitome_std::compaction::{CompactionCx, CompactionOutcome, Compactor};
use epitome_std::history::History;
use epitome_std::message::Part;
use epitome_std::session::SessionError;

use super::ResponsesVendor;
use crate::Engine;

/// Hides what a compaction of the server stands for: with [`context_management`](super::context_management) in a request
/// the answer may hold a compaction item, and what stands before it in the next request would be read and paid for again.
///
/// What the user said stays, as do instructions, pins and open work; the newest step too. The item stays where it was said. It does
/// nothing where there is no such item, and is meant to be called always.
///
/// Not for a conversation that goes on with `previous_response_id`: there nothing may be left out.
///
/// ```
/// use std::sync::Arc;
///
/// use epitome_compactors::managed::openai::{ResponsesVendor, ServerCompaction};
/// use epitome_core::Trigger;
/// use epitome_std::compaction::{AutoCompaction, RunPoints};
///
/// let hides = Arc::new(ServerCompaction::new(ResponsesVendor::openai()));
/// let auto = AutoCompaction::new(hides)
///     .with_trigger(Trigger::always())
///     .with_points(RunPoints::NONE.and_after_run());
/// ```
#[derive(Debug, Clone)]
pub struct ServerCompaction {
    vendor: ResponsesVendor,
}

impl ServerCompaction {
    /// For the compactions of this vendor: see [`ResponsesVendor::adopt`] for those that are not OpenAI's.
    #[must_use]
    pub const fn new(vendor: ResponsesVendor) -> Self {
        Self { vendor }
    }

    /// The group of the latest item.
    fn latest(&self, history: &History) -> Option<u32> {
        let is_own =
            |part: &Part| matches!(part, Part::Compaction(left) if left.provider == self.vendor.provider());
        let at = history.live().iter().rposition(|live| live.entry.message.parts().iter().any(is_own))?;
        let at = u32::try_from(at).ok()?;
        let holds = |group: &Group<'_>| group.positions().any(|positions| positions.contains(&at));
        history.index().groups().find(holds).map(|group| group.leader())
    }
}

#[async_trait]
impl Compactor for ServerCompaction {
    fn name(&self) -> &str {
        NAME
    }

    /// # Errors
    /// What the store says.
    async fn compact(&self, cx: &mut CompactionCx<'_>) -> Result<CompactionOutcome, SessionError> {
        match self.latest(cx.history()) {
            Some(leader) => Engine::new(Before(leader)).compact(cx).await,
            None => Ok(CompactionOutcome::Unchanged("the server has compacted nothing".into())),
        }
    }
}

const NAME: &str = "server-compaction";

/// Hides what the model and tools said before a group.
#[derive(Debug)]
struct Before(u32);

impl Strategy for Before {
    fn name(&self) -> &'static str {
        NAME
    }

    /// The server has seen all of it.
    fn protection(&self) -> Protection {
        Protection::default().with_keep_steps(1)
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        let index = draft.index();
        let stays = |kind| matches!(kind, GroupKind::User | GroupKind::System);
        for group in index.groups().filter(|group| group.leader() < self.0 && !stays(group.kind())) {
            // What is protected stays.
            let _ = draft.drop_group(group.leader());
        }
    }
}
