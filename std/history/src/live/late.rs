//! Answers that came when their calls were hidden already.

use std::collections::BTreeMap;

use epitome_core::attribution::SeqRange;
use epitome_core::message::{CallKind, Role};
use epitome_core::{OpenKind, Seq};
use epitome_message::{Message, Part, ToolCall};

use super::History;
use crate::ext::PAGE;
use crate::{Entry, HistoryStore, Logged, SessionId, StoreError};

/// A call and the answer to it.
pub type Exchange = Vec<Message>;

impl History {
    /// The answers that have come to calls which the summaries at these positions stand for, and that none of them has been
    /// written with: each with its call. They are in no request and are never lost: whoever writes what is to stand in the
    /// place of such a summary is shown them.
    ///
    /// One that came shortly before a summary was made may be among them once more. The log is read from the last message
    /// that a summary covers.
    ///
    /// # Errors
    /// As [`HistoryStore::log`].
    pub async fn late_answers(
        &self,
        positions: impl IntoIterator<Item = u32> + Send,
    ) -> Result<Vec<Vec<Message>>, StoreError> {
        let positions: Vec<u32> = positions.into_iter().collect();
        let live = positions.into_iter().filter_map(|position| self.live().get(position as usize));
        let mut found = Vec::new();
        for live in live {
            match &self.beside {
                Some(beside) => found.extend(beside.get(&live.key).into_iter().flatten().cloned()),
                None => found.extend(self.late_answers_in(&live.covers, Seq(u64::MAX)).await?),
            }
        }
        Ok(found)
    }

    /// The late answers to groups of a summary, as far as they came before the message `until`.
    #[doc(hidden)]
    pub async fn late_answers_in(
        &self,
        covers: &[SeqRange],
        until: Seq,
    ) -> Result<Vec<Exchange>, StoreError> {
        let Some(last) = covers.last() else { return Ok(Vec::new()) };
        // Whatever came before that was there when the summary was written.
        in_log(&*self.store, &self.session, covers, (last.last.next(), until)).await
    }

    /// The exchange that `answer` completes, whose call is in the log.
    #[doc(hidden)]
    pub async fn late_exchange(&self, answer: &Entry) -> Result<Exchange, StoreError> {
        let call = call_of(&*self.store, &self.session, answer, self.head()).await?;
        Ok(exchange(answer, call.iter()))
    }

    /// Gives a copy that has no log of late answers these answers.
    #[doc(hidden)]
    pub fn with_late_answers(mut self, beside: Beside) -> Self {
        self.beside = Some(beside);
        self
    }
}

/// The answers among the messages from `from` to before `until` to calls in `covers`, each with its call: what a summary
/// that stands for these cannot know if it was written before they came. Orphans answer nothing, and what was pruned says nothing.
async fn in_log(
    store: &dyn HistoryStore,
    session: &SessionId,
    covers: &[SeqRange],
    (from, until): (Seq, Seq),
) -> Result<Vec<Exchange>, StoreError> {
    let (mut found, mut next) = (Vec::new(), Some(from).filter(|from| *from < until));
    let covered = |seq: Seq| covers.iter().any(|range| range.contains(seq));
    let is_late = |logged: &Logged| {
        let Logged { entry, hidden_by, pruned_by, .. } = logged;
        entry.late && !entry.orphan && hidden_by.is_some() && pruned_by.is_none() && covered(entry.anchor)
    };
    while let Some(first) = next {
        let page = store.log(session, first..until, PAGE).await?;
        for logged in page.messages.into_iter().filter(is_late) {
            let call = call_of(store, session, &logged.entry, first).await?;
            found.push(exchange(&logged.entry, call.iter()));
        }
        next = page.next;
    }
    Ok(found)
}

/// The call that `answer` answers, as it stands in the log; `None` if it was pruned.
async fn call_of(
    store: &dyn HistoryStore,
    session: &SessionId,
    answer: &Entry,
    until: Seq,
) -> Result<Option<Part>, StoreError> {
    let Some((kind, id)) = answer.answers() else { return Ok(None) };
    let mut next = Some(answer.anchor);
    while let Some(first) = next {
        // A group begins at its anchor, and its calls are seldom far behind.
        let page = store.log(session, first..until.max(first.next()), CALL_PAGE).await?;
        let own = page.messages.iter().filter(|logged| logged.entry.anchor == answer.anchor);
        let mut parts = own.flat_map(|logged| logged.entry.message.parts());
        if let Some(call) = parts.find(|part| is_call(part, kind, id)) {
            return Ok(Some(call.clone()));
        }
        next = page.next;
    }
    Ok(None)
}

const CALL_PAGE: u32 = 16;

fn is_call(part: &Part, kind: OpenKind, id: &str) -> bool {
    match part {
        Part::ToolCall(call) => {
            kind == OpenKind::Call && call.kind == CallKind::Function && call.id.as_str() == id
        }
        Part::ApprovalRequest(request) => kind == OpenKind::Approval && request.id.as_str() == id,
        _ => false,
    }
}

/// A call, found among `parts`, and its answer. The call alone: what else its message said is known, and its other calls
/// have their own answers.
pub fn exchange<'p>(answer: &Entry, parts: impl IntoIterator<Item = &'p Part>) -> Exchange {
    let asked = answer.answers();
    let call =
        parts.into_iter().find(|part| asked.is_some_and(|(kind, id)| is_call(part, kind, id))).cloned();
    let call = call.or_else(|| answer.call_id().map(|id| Part::ToolCall(ToolCall::new(id, DELETED, "{}"))));
    let call = call.map(|call| Message::new(Role::Assistant, vec![call]));
    call.into_iter().chain([answer.message.clone()]).collect()
}

/// The name of a tool whose call was deleted.
const DELETED: &str = "deleted";

/// The answers that a copy of a history has no log of, by the number of the summary that they are news to.
pub type Beside = BTreeMap<Seq, Vec<Exchange>>;
