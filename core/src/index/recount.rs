//! Correction of sizes of which only bounds were known when their messages were put in the index.

use super::push::IndexBuf;
use super::{GroupKind, Span};
use crate::Tokens;
use crate::table::Table;

impl<S: Table<Span>, C, P> IndexBuf<S, C, P> {
    /// Changes the size of the message at `position` from `was` to `now`, and corrects its group and the sums. Costs a
    /// binary search.
    ///
    /// A position that is not in the index changes nothing. A group of [`Tokens::MAX`] is too large for its size to be
    /// known, and keeps this size.
    ///
    /// ```
    /// use epitome_core::{ArrayTable, IndexBuf, OpenCallSlots, Span, Tokens};
    /// use epitome_core::message::SimpleMessage;
    ///
    /// let mut index = IndexBuf::<ArrayTable<Span, 4>, OpenCallSlots<1>>::new();
    /// index.push(&SimpleMessage::user("About ten tokens, or so"), Tokens(10))?;
    /// index.recount(0, Tokens(10), Tokens(9));
    /// assert_eq!(index.view().tokens(), 9);
    /// # Ok::<(), epitome_core::Full>(())
    /// ```
    pub fn recount(&mut self, position: u32, was: Tokens, now: Tokens) {
        if position >= self.totals.messages {
            return;
        }
        let spans = self.spans.as_mut_slice();
        let at = spans.partition_point(|span| span.first <= position).saturating_sub(1);
        let Some(run) = spans.get_mut(at) else { return };
        let leader = run.leader as usize;
        if leader != at {
            run.tokens = corrected(run.tokens, was, now);
        }
        let Some(leader) = spans.get_mut(leader) else { return };
        let before = leader.tokens;
        if before == Tokens::MAX.0 {
            return;
        }
        leader.tokens = corrected(before, was, now);
        let total = match leader.kind() {
            GroupKind::Orphan => &mut self.totals.orphan_tokens,
            _ => &mut self.totals.tokens,
        };
        *total = total.saturating_sub(u64::from(before)).saturating_add(u64::from(leader.tokens));
    }
}

fn corrected(tokens: u32, was: Tokens, now: Tokens) -> u32 {
    Tokens::from_u64(u64::from(tokens).saturating_add(now.as_u64()).saturating_sub(was.as_u64())).0
}
