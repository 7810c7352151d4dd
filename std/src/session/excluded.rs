//! The marks that compactions of Microsoft Agent Framework leave in messages.
//!
//! There a message that a compaction excludes stays in the list, with `_excluded` in its `additional_properties`; what stands
//! in its place is another message of the list. Here it is hidden by a record, as far as it may be: open work, pins,
//! instructions, the first and the last request and the newest step stay, and of a group all or nothing is hidden.

use std::sync::Arc;

use epitome_core::attribution::SeqRange;
use epitome_core::{Budget, Pass, Seq, TokenCounter};
use serde_json::Value;

use super::{SessionError, SessionErrorKind};
use crate::compaction::DropGroups;
use crate::history::{History, HistoryStore, MemoryStore, SessionId, joined};
use crate::wire::WireError;
use crate::wire::agent_framework::read_messages;

/// Names it in records.
const NAME: &str = "agent-framework";

/// The numbers of the messages that are marked, in a log that is this list.
pub(super) fn marked(values: &[Value]) -> Result<Vec<SeqRange>, WireError> {
    let is_marked = |value: &Value| {
        let properties = value.get("additional_properties");
        properties.and_then(|it| it.get("_excluded")).and_then(Value::as_bool).unwrap_or_default()
    };
    let (mut ranges, mut next) = (Vec::new(), 0_u64);
    if values.iter().any(is_marked) {
        for value in values {
            // One value may be several messages.
            let count = read_messages(core::slice::from_ref(value))?.len() as u64;
            let end = next.saturating_add(count);
            if is_marked(value) {
                ranges.extend((next..end).map(|seq| SeqRange { first: Seq(seq), last: Seq(seq) }));
            }
            next = end;
        }
    }
    Ok(joined(ranges))
}

/// Hides what is marked in the history that `store` has of `session`. Nobody else has the store yet.
pub(super) async fn hide(
    store: Arc<MemoryStore>,
    session: &SessionId,
    marked: &[SeqRange],
    counter: Arc<dyn TokenCounter + Send + Sync>,
) -> Result<(), SessionError> {
    let shared: Arc<dyn HistoryStore> = store;
    let mut history = History::open(shared, session.clone(), counter).await?;
    let is_marked = |range: &SeqRange| {
        marked.iter().any(|marked| marked.contains(range.first) && marked.contains(range.last))
    };
    let visible = history.visible();
    let groups = visible.index().groups().filter(|group| visible.covered_by(group).iter().all(is_marked));
    let leaders: Vec<u32> = groups.map(|group| group.leader()).collect();
    if leaders.is_empty() {
        return Ok(());
    }
    // All that is marked goes, however little it frees, and however large the rest is.
    let budget = Budget::builder().window(u64::MAX).reserve(0).min_reclaim(0).without_goal().build();
    let budget = budget.map_err(|_| SessionError::invalid("no budget to hide messages in"))?;
    let hidden = history.compact(&budget, Pass::Manual, &DropGroups { leaders, name: NAME }).await;
    hidden.map(drop).map_err(|error| {
        SessionError::new(SessionErrorKind::Corrupt, "what is marked in the state").with_source(error)
    })
}
