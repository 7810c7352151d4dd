//! Tool results that are shown shortened from their first request on.

use epitome_core::{Clamp, ELIDED_TOKENS_MAX, Index, IndexedPart, PartKind, TokenCounter, Tokens};

use super::live::Run;
use super::scratch;
use super::{Point, RecallTool, RunEvent};
use crate::compaction::CompactionOptions;
use crate::history::{CompactionRecord, History, Live, MessageEdit, PartStandIn, Pins, part_text};
use crate::message::Str;
use crate::session::SessionError;

impl Run<'_> {
    /// Shortens each tool result with more tokens than the settings allow: see
    /// [`RunSettings::with_tool_result_limit`](super::RunSettings::with_tool_result_limit).
    pub(super) async fn shorten_results(&mut self) {
        let Some(limit) = self.settings.tool_result_limit.filter(|_| !self.served.is_kept()) else { return };
        // An answer of the recall tool is not shortened again.
        let recalled = if self.settings.recall { Tokens(RecallTool::TOKENS_MAX) } else { Tokens::ZERO };
        let limit = limit.max(ELIDED_TOKENS_MAX).max(recalled);
        let options = self.compaction.as_ref().map(|auto| &auto.options);
        let pins = options.map(CompactionOptions::pins).cloned().unwrap_or_else(Pins::default);
        let (index, live) = (self.working.index(), self.working.visible().live());
        let is_pinned = |part: &IndexedPart<'_>| {
            let live = live.get(part.position() as usize);
            live.is_none_or(|live| pins.holds(self.working.stored_number(live.key), &live.entry.message))
        };
        let counter = &**self.working.counter();
        if !index.parts().any(|part| is_too_long(index, live, &part, limit, counter) && !is_pinned(&part)) {
            return;
        }
        match self.shorten_results_to(limit, &pins).await {
            Ok(Some((results, tokens))) => self.tell(RunEvent::ResultsShortened { results, tokens }),
            Ok(None) => {}
            Err(error) => self.failed(Point::BeforeCall, &error),
        }
    }

    /// Returns the number of results that are newly shortened, and the number of tokens that this saves in all.
    async fn shorten_results_to(
        &mut self,
        limit: Tokens,
        pins: &Pins,
    ) -> Result<Option<(u32, u64)>, SessionError> {
        let mut copy = self.copy(pins).await?;
        let record = record(&copy, limit);
        let Some(first) = record.edits.first().map(|edit| edit.seq) else { return Ok(None) };
        let results = record.edits.iter().map(|edit| edit.stand_ins.len()).sum::<usize>();
        let freed = record.tokens_before.saturating_sub(record.tokens_after);
        copy.commit(&record).await?;
        let (is_unsent, revision) = (self.working.is_unsent(first), self.working.stamp().revision);
        let strategy = self.working.strategy_or(STRATEGY);
        scratch::adopt(&mut self.working, &copy, &strategy)?;
        if is_unsent {
            // The messages that were sent are unchanged: their size and early work over them stay valid.
            self.working.hold_at(revision);
        }
        Ok(Some((u32::try_from(results).unwrap_or(u32::MAX), freed)))
    }
}

/// The record that shortens the results in `history` whose texts have more than `limit` tokens.
fn record(history: &History, limit: Tokens) -> CompactionRecord {
    let (index, clamp) = (history.index(), Clamp::within(limit));
    let mut record = CompactionRecord::new(index.revision(), history.head());
    (record.tokens_before, record.tokens_after) = (index.tokens(), index.tokens());
    record.strategy = Str::from(STRATEGY);
    let is_long = |part: &IndexedPart<'_>| is_too_long(index, history.live(), part, limit, history.counter());
    for part in index.parts().filter(is_long) {
        let live = history.live().get(part.position() as usize);
        let Some((live, (text, tokens))) = live.zip(history.clamped_text(&part, clamp)) else { continue };
        let freed = part.tokens().0.saturating_sub(tokens.0);
        let stand_in = PartStandIn::new(part.ordinal(), Some(Str::from(text)));
        record.tokens_after = record.tokens_after.saturating_sub(u64::from(freed));
        match record.edits.last_mut().filter(|edit| edit.seq == live.key) {
            Some(edit) => {
                edit.count.tokens = Tokens(edit.count.tokens.0.saturating_sub(freed));
                edit.stand_ins.push(stand_in);
            }
            None => {
                let mut count = live.entry.count.clone();
                count.tokens = Tokens(count.tokens.0.saturating_sub(freed));
                record.edits.push(MessageEdit::new(live.key, vec![stand_in], count));
            }
        }
    }
    record
}

/// Whether a part is a result whose text has more than `limit` tokens. Pinned groups and summaries stay. A result that
/// is large because of its media stays too: no text can stand for them.
fn is_too_long(
    index: Index<'_>,
    live: &[Live],
    part: &IndexedPart<'_>,
    limit: Tokens,
    counter: &dyn TokenCounter,
) -> bool {
    if part.kind() != PartKind::ToolResult || part.tokens() <= limit {
        return false;
    }
    let Some(live) = live.get(part.position() as usize).filter(|live| live.covers.is_empty()) else {
        return false;
    };
    let is_pinned = index.group(part.leader()).is_none_or(|group| group.is_pinned());
    let text = part_text(&live.entry.message, part.ordinal());
    !is_pinned && text.is_some_and(|text| counter.count_up_to(&text, limit).is_none())
}

/// The name of the record.
const STRATEGY: &str = "tool_result_limit";
