//! Compactions by the server within a response.

use async_trait::async_trait;
use std::boxed::Box;

use epitome_core::{Draft, Group, GroupKind, Protection, Strategy};
use epitome_std::compaction::{CompactionCx, CompactionOutcome, Compactor, UnchangedReason};
use epitome_std::history::History;
use epitome_std::message::{Part, Str};
use epitome_std::session::SessionError;

use super::anthropic::PROVIDER;
use super::openai::ResponsesVendor;
use crate::Engine;

/// Hides the messages that a compaction of the server covers, in a session whose requests let the server compact at
/// a threshold.
///
/// *OpenAI* ([`context_management`](super::openai::context_management)): the response may contain a compaction
/// item. The messages before it would be read and paid for again in the next request. Messages of the user stay.
///
/// *Anthropic* ([`ThresholdCompaction`](super::anthropic::ThresholdCompaction)): the response may contain a block,
/// and the API ignores the messages before it. They are not paid for, but sent and checked. Messages of the user
/// are hidden too, unless they are protected.
///
/// Instructions, pins, open calls and the newest step stay. The item stays in its place. Call it always: without
/// such an item, it does nothing.
///
/// Do not use it for a conversation with `previous_response_id`, in which no message may be left out.
///
/// ```
/// use std::sync::Arc;
///
/// use epitome_compactors::managed::ServerCompaction;
/// use epitome_compactors::managed::openai::ResponsesVendor;
/// use epitome_core::Trigger;
/// use epitome_std::compaction::{AutoCompaction, RunPoints};
///
/// let hides = Arc::new(ServerCompaction::new(&ResponsesVendor::openai()));
/// let auto = AutoCompaction::new(hides)
///     .with_trigger(Trigger::always())
///     .with_points(RunPoints::NONE.and_after_run());
/// ```
#[derive(Debug, Clone)]
pub struct ServerCompaction {
    provider: Str,
    users_stay: bool,
}

impl ServerCompaction {
    /// A compactor for this vendor's compactions: see [`ResponsesVendor::adopt`] for vendors other than OpenAI.
    #[must_use]
    pub fn new(vendor: &ResponsesVendor) -> Self {
        Self { provider: vendor.provider().into(), users_stay: true }
    }

    /// A compactor for the compactions of Anthropic.
    #[must_use]
    pub fn anthropic() -> Self {
        Self { provider: PROVIDER.into(), users_stay: false }
    }

    /// The group of the latest item with content. An item without content comes from a failed compaction.
    fn latest(&self, history: &History) -> Option<u32> {
        let is_own = |part: &Part| match part {
            Part::Compaction(left) => {
                left.provider == self.provider && !(left.text.is_empty() && left.opaque.is_none())
            }
            _ => false,
        };
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
    /// The errors of the store.
    async fn compact(&self, cx: &mut CompactionCx<'_>) -> Result<CompactionOutcome, SessionError> {
        match self.latest(cx.history()) {
            Some(leader) => Engine::new(Before { leader, users_stay: self.users_stay }).compact(cx).await,
            None => Ok(CompactionOutcome::Unchanged(UnchangedReason::NothingByServer)),
        }
    }
}

const NAME: &str = "server-compaction";

/// Hides the messages before a group.
#[derive(Debug)]
struct Before {
    leader: u32,
    users_stay: bool,
}

impl Strategy for Before {
    fn name(&self) -> &'static str {
        NAME
    }

    /// Of the steps, only the newest is protected, because the server has seen all messages.
    fn protection(&self) -> Protection {
        Protection::default().with_keep_steps(1)
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        let index = draft.index();
        let stays = |kind| kind == GroupKind::System || self.users_stay && kind == GroupKind::User;
        for group in index.groups().filter(|group| group.leader() < self.leader && !stays(group.kind())) {
            // A protected group stays.
            let _ = draft.drop_group(group.leader());
        }
    }
}
