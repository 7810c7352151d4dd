//! What a plan does to a stored session, as a record.

use epitome_core::attribution::{Authority, SeqRange, SourceKind};
use epitome_core::message::Role;
use epitome_core::{Edit, ReadyPlan, SummaryEdit, Tokens, Verdict, measure_message};

use super::edit::{original_ordinal, shortened_messages};
use super::visible::{Counter, Visible, covered, joined, named};
use super::{CompactionRecord, Live, MessageEdit, PartStandIn, Summary};
use crate::message::{Attribution, Message, Part, Str};

/// The source id of summaries that a plan puts in the place of messages.
const SOURCE_ID: &str = "compaction";

impl Visible {
    /// What `ready`, made from this index, does to the stored session.
    pub(super) fn record(&self, ready: &ReadyPlan<'_, '_>, counter: &Counter) -> CompactionRecord {
        let plan = ready.plan();
        let mut record = CompactionRecord::new(self.index().revision(), self.head());
        record.hides = self.covered_where(|group| plan.verdict(group) != Verdict::Keep);
        record.unanswered = self.unanswered_where(|group| plan.verdict(group) != Verdict::Keep);
        record.tokens_before = plan.tokens_before();
        record.tokens_after = ready.tokens_after();
        for edit in ready.edits() {
            if let Edit::Summary(edit) = edit {
                record.summaries.extend(self.summary(&edit, counter));
            }
        }
        let edits = shortened_messages(ready).into_iter();
        record.edits =
            edits.filter_map(|(position, shown)| self.message_edit(position, shown, counter)).collect();
        record
    }

    /// Has `record` show `text` too: as a part of its last summary, or in the place of the last messages that it hides. Returns the
    /// tokens of the text; `None` if there is no place for it, or it has more tokens than `tokens_max`.
    pub(super) fn add_text(
        &self,
        record: &mut CompactionRecord,
        text: Str,
        tokens_max: u64,
        counter: &Counter,
    ) -> Option<u64> {
        let is_text = |part: &Part| matches!(part, Part::Text(_));
        let (at, mut summary) = match record.summaries.last() {
            Some(summary) if summary.message.parts().iter().all(is_text) => {
                (record.summaries.len().checked_sub(1)?, summary.clone())
            }
            Some(_) => return None,
            None => (0, self.place_of(*record.hides.last()?, counter)),
        };
        let before = if record.summaries.is_empty() { Tokens(0) } else { summary.count.tokens };
        let parts = summary.message.parts().iter().cloned().chain([Part::Text(text)]).collect();
        summary.message = summary.message.with_parts(parts);
        summary.count = named(measure_message(&summary.message, counter), counter);
        let tokens = summary.count.tokens.as_u64().saturating_sub(before.as_u64());
        if tokens > tokens_max {
            return None;
        }
        record.summaries.truncate(at);
        record.summaries.push(summary);
        record.tokens_after = record.tokens_after.saturating_add(tokens);
        Some(tokens)
    }

    /// A summary without a text, in the place of hidden messages.
    fn place_of(&self, hidden: SeqRange, counter: &Counter) -> Summary {
        let goes = self.live().iter().filter(|live| hidden.contains(live.key));
        let authority = Authority::of_summary(goes.map(|live| live.entry.message.attribution().authority));
        let attribution = Attribution::new(SOURCE_ID, SourceKind::Compaction, authority);
        let message = Message::new(Role::Assistant, Vec::new());
        let message = message.with_attribution(attribution.with_derived_from(vec![hidden]));
        let count = named(measure_message(&message, counter), counter);
        Summary::new(hidden.first, message, count)
    }

    /// A message of the model, because models write summaries; it has no more authority than the least of what it covers.
    fn summary(&self, edit: &SummaryEdit<'_, '_>, counter: &Counter) -> Option<Summary> {
        let covers = || edit.covers().flatten().filter_map(|position| self.live().get(position as usize));
        let authority =
            Authority::of_summary(covers().map(|live| live.entry.message.attribution().authority));
        let ranges = joined(covers().flat_map(covered).collect());
        let key = ranges.first()?.first;
        let attribution = Attribution::new(SOURCE_ID, SourceKind::Compaction, authority);
        let message =
            Message::assistant(edit.stand_in.text).with_attribution(attribution.with_derived_from(ranges));
        let count = named(measure_message(&message, counter), counter);
        Some(Summary::new(key, message, count))
    }

    /// What becomes of one message. `shown` counts the parts that are to be seen, a store those that were appended.
    fn message_edit(&self, position: u32, shown: Vec<PartStandIn>, counter: &Counter) -> Option<MessageEdit> {
        let live: &Live = self.live().get(position as usize)?;
        let edited = PartStandIn::apply(&shown, &live.entry.message);
        let count = named(measure_message(&edited, counter), counter);
        let stored = shown.into_iter().map(|stand_in| {
            PartStandIn::new(original_ordinal(&live.stand_ins, stand_in.ordinal), stand_in.text)
        });
        Some(MessageEdit::new(live.key, stored.collect(), count))
    }
}
