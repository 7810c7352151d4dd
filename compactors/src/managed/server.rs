//! Compactions that the server made while it answered.

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

/// Hides what a compaction of the server stands for, in a session whose requests let the server compact at a threshold.
///
/// *OpenAI* ([`context_management`](super::openai::context_management)): the answer may hold a compaction item, and what stands
/// before it in the next request would be read and paid for again. What the user said stays.
///
/// *Anthropic* ([`ThresholdCompaction`](super::anthropic::ThresholdCompaction)): the answer may hold a block, and the API passes
/// over what stands before it. That is not paid for, but sent and checked. What the user said goes too, where it may.
///
/// Instructions, pins and open work stay, and the newest step. The item stays where it was said. It does nothing where there is no
/// such item, and is meant to be called always.
///
/// Not for a conversation that goes on with `previous_response_id`: there nothing may be left out.
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
    /// For the compactions of this vendor: see [`ResponsesVendor::adopt`] for those that are not OpenAI's.
    #[must_use]
    pub fn new(vendor: &ResponsesVendor) -> Self {
        Self { provider: vendor.provider().into(), users_stay: true }
    }

    /// For those of Anthropic.
    #[must_use]
    pub fn anthropic() -> Self {
        Self { provider: PROVIDER.into(), users_stay: false }
    }

    /// The group of the latest item. One that says nothing is that of a compaction that failed.
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
    /// What the store says.
    async fn compact(&self, cx: &mut CompactionCx<'_>) -> Result<CompactionOutcome, SessionError> {
        match self.latest(cx.history()) {
            Some(leader) => Engine::new(Before { leader, users_stay: self.users_stay }).compact(cx).await,
            None => Ok(CompactionOutcome::Unchanged(UnchangedReason::NothingByServer)),
        }
    }
}

const NAME: &str = "server-compaction";

/// Hides what was said before a group.
#[derive(Debug)]
struct Before {
    leader: u32,
    users_stay: bool,
}

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
        let stays = |kind| kind == GroupKind::System || self.users_stay && kind == GroupKind::User;
        for group in index.groups().filter(|group| group.leader() < self.leader && !stays(group.kind())) {
            // What is protected stays.
            let _ = draft.drop_group(group.leader());
        }
    }
}
