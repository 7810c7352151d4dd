//! The marks that compactions of Microsoft Agent Framework leave in messages.
//!
//! Agent Framework keeps an excluded message in the list, with `_excluded` in its `additional_properties`. Its stand-in
//! is another message of the list. Here a record hides the message, as far as it may be hidden: open work, pins,
//! instructions, the first and the last request and the newest step stay. A group is hidden whole or not at all.

use std::collections::BTreeSet;
use std::sync::Arc;

use epitome_core::attribution::SeqRange;
use epitome_core::{Budget, Pass, Seq, TokenCounter};
use serde_json::Value;

use super::kept::is_excluded;
use super::{SessionError, SessionErrorKind};
use crate::compaction::DropGroups;
use crate::history::inner::joined;
use crate::history::{History, HistoryStore, Live, MemoryStore, SessionId};
use crate::wire::WireError;
use crate::wire::agent_framework::read_messages;

/// The name of the strategy in records.
const NAME: &str = "agent-framework";

/// Excluded messages: of the log, and stand-ins for others, by their numbers.
#[derive(Default)]
pub(super) struct Marked {
    log: Vec<SeqRange>,
    stand_ins: BTreeSet<Seq>,
}

impl Marked {
    pub(super) fn is_empty(&self) -> bool {
        self.log.is_empty() && self.stand_ins.is_empty()
    }

    /// Whether a visible message is marked. The mark of a summary is on the message that stands for it in the list.
    fn has(&self, live: &Live) -> bool {
        let in_log = || self.log.iter().any(|range| range.contains(live.key));
        self.stand_ins.contains(&live.key) || live.covers.is_empty() && in_log()
    }
}

/// Messages that Agent Framework has excluded in a list: in the `log` and the `stand_ins` that were written here, and in the `rest`, which
/// continues the log.
pub(super) fn marked(log: &[Value], stand_ins: &[(Seq, Value)], rest: &[Value]) -> Result<Marked, WireError> {
    let stand_ins = stand_ins.iter().filter(|(_, value)| is_excluded(value));
    let stand_ins = stand_ins.map(|(seq, _)| *seq).collect();
    let all = || log.iter().chain(rest);
    if !all().any(is_excluded) {
        return Ok(Marked { log: Vec::new(), stand_ins });
    }
    let (mut ranges, mut next) = (Vec::new(), 0_u64);
    for value in all() {
        // One value may be several messages.
        let count = read_messages(core::slice::from_ref(value))?.len() as u64;
        let end = next.saturating_add(count);
        if is_excluded(value) {
            ranges.extend((next..end).map(|seq| SeqRange { first: Seq(seq), last: Seq(seq) }));
        }
        next = end;
    }
    Ok(Marked { log: joined(ranges), stand_ins })
}

/// Hides the marked messages in the history of `session` in `store`. The store is not shared yet.
pub(super) async fn hide(
    store: Arc<MemoryStore>,
    session: &SessionId,
    marked: &Marked,
    counter: Arc<dyn TokenCounter + Send + Sync>,
) -> Result<(), SessionError> {
    let shared: Arc<dyn HistoryStore> = store;
    let mut history = History::open(shared, session.clone(), counter).await?;
    let visible = history.visible();
    let is_marked = |at: u32| visible.live().get(at as usize).is_some_and(|live| marked.has(live));
    let groups = visible.index().groups().filter(|group| group.positions().flatten().all(is_marked));
    let leaders: Vec<u32> = groups.map(|group| group.leader()).collect();
    if leaders.is_empty() {
        return Ok(());
    }
    // All marked messages are hidden, however little that frees, and however large the rest is.
    let budget = Budget::builder().window(u64::MAX).reserve(0).min_reclaim(0).without_goal().build();
    let budget = budget.map_err(|_| SessionError::invalid("no budget to hide messages in"))?;
    let hidden = history.compact(&budget, Pass::Manual, &DropGroups { leaders, name: NAME }).await;
    hidden.map(drop).map_err(|error| {
        SessionError::new(SessionErrorKind::Corrupt, "what is marked in the state").with_source(error)
    })
}
