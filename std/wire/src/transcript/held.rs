//! The records that conversations held at the time of reading.

use std::sync::Arc;

use super::{AsRead, SourceRecordId, Stages, Transcript};

/// For each record, the number of unchanged conversations with it.
pub(super) struct Held(Vec<u32>);

impl Held {
    pub(super) fn of(transcript: &Transcript) -> Self {
        let mut counts = vec![0_u32; transcript.records.len()];
        let mut add = |id: SourceRecordId, by: i64| {
            if let Some(count) = counts.get_mut(id.0 as usize) {
                let now = i64::from(*count).saturating_add(by).max(0);
                *count = u32::try_from(now).unwrap_or(u32::MAX);
            }
        };
        // Records of shared conversations are counted for all of them at once. Then the changed conversations are
        // subtracted.
        let mut known: Vec<&Arc<dyn Stages>> = Vec::new();
        for conversation in &transcript.conversations {
            let is_untouched = transcript.is_untouched(conversation);
            match &conversation.as_read {
                AsRead::Own(places) if is_untouched => places.iter().for_each(|(id, _)| add(*id, 1)),
                AsRead::Own(_) => {}
                AsRead::Shared(stage) => {
                    if !known.last().is_some_and(|last| Arc::ptr_eq(last, &stage.of)) {
                        known.push(&stage.of);
                        let holders = stage.of.holders();
                        let each = stage.of.entries().iter().zip(holders);
                        each.for_each(|(entry, count)| {
                            entry.record.iter().for_each(|id| add(*id, count.into()))
                        });
                    }
                    if !is_untouched {
                        stage.as_read().for_each(|(id, _)| add(id, -1));
                    }
                }
            }
        }
        Self(counts)
    }

    pub(super) fn has(&self, id: SourceRecordId) -> bool {
        self.0.get(id.0 as usize).is_some_and(|count| *count > 0)
    }
}
