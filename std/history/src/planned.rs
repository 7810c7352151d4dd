//! The record of a plan: its changes to a stored session.

use epitome_core::attribution::{Authority, Retention, SeqRange, SourceKind};
use epitome_core::message::Role;
use epitome_core::{PlannedEdit, ReadyPlan, SummaryEdit, Tokens, Verdict, measure_message};
use epitome_message::{Attribution, Message, Part};

use super::edit::{original_ordinal, shortened_messages};
use super::visible::{Counter, VisibleIndex, covered, joined, named};
use super::{CompactionRecord, Live, MessageEdit, PartStandIn, Summary};

/// The source id of summaries that a plan puts in the place of messages.
const SOURCE_ID: &str = "compaction";

/// Beginning of a part that a hook of a compaction added to a summary. The part does not belong to the text of the
/// summary.
pub const RELOADED: &str = "[Reloaded after a compaction]\n";

/// Whether a message has only such parts.
fn is_reloaded_only(message: &Message) -> bool {
    let is = |part: &Part| matches!(part, Part::Text(text) if text.starts_with(RELOADED));
    !message.parts().is_empty() && message.parts().iter().all(is)
}

impl VisibleIndex {
    /// The changes of `ready`, which was made from this index, to the stored session. Without `parts`, a summary has
    /// the text of the plan.
    pub(super) fn record(
        &self,
        ready: &ReadyPlan<'_, '_>,
        mut parts: impl Iterator<Item = Vec<Part>>,
        counter: &Counter,
    ) -> CompactionRecord {
        let plan = ready.plan();
        let mut record = CompactionRecord::new(self.index().revision(), self.head());
        record.hides = self.covered_where(|group| plan.verdict(group) != Verdict::Keep);
        record.unanswered = self.unanswered_where(|group| plan.verdict(group) != Verdict::Keep);
        record.tokens_before = plan.tokens_before();
        record.tokens_after = ready.tokens_after();
        for edit in ready.edits() {
            if let PlannedEdit::Summary(edit) = edit {
                let text = || Vec::from([Part::Text(edit.stand_in.text.into())]);
                let parts = parts.next().unwrap_or_else(text);
                record.summaries.extend(self.summary(&edit, parts, counter));
            }
        }
        let edits = shortened_messages(ready).into_iter();
        record.edits =
            edits.filter_map(|(position, shown)| self.message_edit(position, shown, counter)).collect();
        record
    }

    /// Adds `text` to `record`: as a part of its last summary, or in the place of the last stored messages that it
    /// hides. Texts of earlier compactions that stand alone are hidden. Returns the tokens of the text; `None` if there
    /// is no place for it, or it has more tokens than `tokens_max`.
    pub(super) fn add_text(
        &self,
        record: &mut CompactionRecord,
        text: &str,
        tokens_max: u64,
        counter: &Counter,
    ) -> Option<u64> {
        let is_text = |part: &Part| matches!(part, Part::Text(_));
        let last = record.summaries.pop();
        let (mut summary, before) = match &last {
            Some(summary) if summary.message.parts().iter().all(is_text) => {
                (summary.clone(), summary.count.tokens)
            }
            Some(_) => {
                record.summaries.extend(last);
                return None;
            }
            None => (self.place_of(record, counter)?, Tokens(0)),
        };
        let text = Part::Text(format!("{RELOADED}{text}").into());
        let parts = summary.message.parts().iter().cloned().chain([text]).collect();
        summary.message = summary.message.with_parts(parts);
        summary.count = named(measure_message(&summary.message, counter), counter);
        let tokens = summary.count.tokens.as_u64().saturating_sub(before.as_u64());
        if tokens > tokens_max {
            record.summaries.extend(last);
            return None;
        }
        record.summaries.push(summary);
        record.tokens_after = record.tokens_after.saturating_add(tokens);
        self.hide_texts(record);
        Some(tokens)
    }

    /// Hides the messages that contain only such texts of earlier compactions.
    fn hide_texts(&self, record: &mut CompactionRecord) {
        let is_hidden = |live: &Live| record.hides.iter().any(|range| range.contains(live.key));
        let is_only = |live: &&Live| !live.covers.is_empty() && is_reloaded_only(&live.entry.message);
        let texts: Vec<&Live> = self.live().iter().filter(is_only).filter(|live| !is_hidden(live)).collect();
        for live in texts {
            let tokens = live.entry.count.tokens.as_u64();
            record.tokens_after = record.tokens_after.saturating_sub(tokens);
            record.hides = joined(record.hides.iter().chain(&live.covers).copied().collect());
        }
    }

    /// An empty summary in the place of the last stored messages that a record hides.
    fn place_of(&self, record: &CompactionRecord, counter: &Counter) -> Option<Summary> {
        let within = |range: SeqRange| {
            let is_within = move |live: &&Live| {
                let covers = |own: &SeqRange| own.first <= range.last && range.first <= own.last;
                range.contains(live.key) || live.covers.iter().any(covers)
            };
            self.live().iter().filter(is_within).map(|live| live.entry.message.attribution())
        };
        // A range without stored messages is no place: the text would be lost with it.
        let is_stored =
            |own: &Attribution| own.source != SourceKind::Context && own.retention != Retention::Ephemeral;
        let range = record.hides.iter().rev().copied().find(|range| within(*range).any(is_stored))?;
        let authority = Authority::of_summary(within(range).map(|own| own.authority));
        let attribution = Attribution::new(SOURCE_ID, SourceKind::Compaction, authority);
        let message = Message::new(Role::Assistant, Vec::new());
        let message = message.with_attribution(attribution.with_derived_from(vec![range]));
        let count = named(measure_message(&message, counter), counter);
        Some(Summary::new(range.first, message, count))
    }

    /// The message has the role of the model, because models write summaries. Its authority is at most the lowest among
    /// the covered messages.
    fn summary(&self, edit: &SummaryEdit<'_, '_>, parts: Vec<Part>, counter: &Counter) -> Option<Summary> {
        let covers = || edit.covers().flatten().filter_map(|position| self.live().get(position as usize));
        let authority =
            Authority::of_summary(covers().map(|live| live.entry.message.attribution().authority));
        let ranges = joined(covers().flat_map(covered).collect());
        let key = ranges.first()?.first;
        let attribution = Attribution::new(SOURCE_ID, SourceKind::Compaction, authority);
        let message = Message::new(Role::Assistant, parts);
        let message = message.with_attribution(attribution.with_derived_from(ranges));
        let count = named(measure_message(&message, counter), counter);
        Some(Summary::new(key, message, count))
    }

    /// The edit of one message. The ordinals of `shown` count the visible parts; a store counts the parts of the
    /// appended message.
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
