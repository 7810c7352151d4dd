//! Late answers to hidden calls.

use std::collections::BTreeMap;

use epitome_core::attribution::SeqRange;
use epitome_core::message::{CallKind, Role};
use epitome_core::{OpenKind, Seq};
use epitome_message::{Message, Part, ToolCall};

use super::History;
use crate::ext::PAGE;
use crate::{Entry, HistoryStore, Logged, SessionId, StoreError};

/// A call and its answer.
pub type Exchange = Vec<Message>;

impl History {
    /// The late answers to calls that the summaries at these positions cover, each with its call. The summaries were
    /// written without these answers. No request contains the answers, but they are not lost: the writer of the next
    /// summary gets them.
    ///
    /// An answer that came shortly before a summary was made may be returned although the summary includes it. The log
    /// is read from the last message that a summary covers.
    ///
    /// # Errors
    /// The errors of [`HistoryStore::log`].
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

    /// The late answers to groups of a summary that came before the message `until`.
    #[doc(hidden)]
    pub async fn late_answers_in(
        &self,
        covers: &[SeqRange],
        until: Seq,
    ) -> Result<Vec<Exchange>, StoreError> {
        let Some(last) = covers.last() else { return Ok(Vec::new()) };
        // Earlier answers existed when the summary was written.
        in_log(&*self.store, &self.session, covers, (last.last.next(), until)).await
    }

    /// The exchange that `answer` completes. Its call is in the log.
    #[doc(hidden)]
    pub async fn late_exchange(&self, answer: &Entry) -> Result<Exchange, StoreError> {
        let call = call_of(&*self.store, &self.session, answer, self.head()).await?;
        Ok(exchange(answer, call.iter()))
    }

    /// Sets the late answers of a copied history, whose store has no log of them.
    #[doc(hidden)]
    pub fn with_late_answers(mut self, beside: Beside) -> Self {
        self.beside = Some(beside);
        self
    }
}

/// The answers to calls in `covers` among the messages from `from` to before `until`, each with its call. A summary of
/// `covers` that was written earlier does not contain them. Orphans and pruned answers are left out.
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

/// The call that `answer` answers, from the log; `None` if it was pruned.
async fn call_of(
    store: &dyn HistoryStore,
    session: &SessionId,
    answer: &Entry,
    until: Seq,
) -> Result<Option<Part>, StoreError> {
    let Some((kind, id)) = answer.answers() else { return Ok(None) };
    let mut next = Some(answer.anchor);
    while let Some(first) = next {
        // A group begins at its anchor, and its calls are usually near the beginning.
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

/// Finds the call among `parts`, and returns it with its answer. The other content of the call's message is left out:
/// it is known, and its other calls have their own answers.
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

/// The late answers of a copied history, by the number of the summary that does not include them.
pub type Beside = BTreeMap<Seq, Vec<Exchange>>;
