//! Load, log and list.

use core::ops::Range;

use epitome_core::{Revision, Seq};

use super::{Place, Session, rules};
use crate::kernel::{Counters, Extent};
use crate::rules::Restored;
use crate::tail::last_turn;
use crate::{
    AppendToken, Committed, Live, Loaded, LogPage, Logged, LoggedAppend, Pruned, SessionId, SessionInfo,
    StoreError,
};

impl Session {
    pub(crate) fn load(&self, extent: Extent) -> Result<Loaded, StoreError> {
        match extent {
            Extent::All => self.load_from(Seq(0)),
            Extent::LastTurn => self.load_from(self.last_turn()),
        }
    }

    /// The first message of the last turn.
    fn last_turn(&self) -> Seq {
        let newest_first = self.live.iter().rev().map_while(|(key, place)| {
            let entry = self.entry(key, place).ok()?;
            Some((key, entry.turn, entry.late))
        });
        last_turn(newest_first).map_or(self.head(), |(begin, _)| begin)
    }

    fn load_from(&self, from: Seq) -> Result<Loaded, StoreError> {
        let mut loaded = Loaded::new(self.head(), self.counters.revision);
        for (key, place) in self.live.from(from) {
            let entry = self.entry(key, place)?.clone();
            loaded.live.push(match place {
                Place::Log => match self.slot(key)?.shortened.as_deref() {
                    Some(Restored { stand_ins, count, .. }) => {
                        Live::shortened(key, entry, stand_ins.clone(), count.clone())
                    }
                    None => Live::new(key, entry),
                },
                Place::Summary { .. } => {
                    let covers = entry.message.attribution().derived_from.clone();
                    Live::summary(key, entry, covers)
                }
            });
        }
        loaded.unanswered = self.unanswered.values().cloned().collect();
        Ok(loaded)
    }

    pub(crate) fn log(&self, range: Range<Seq>, limit: u32) -> LogPage {
        let end = range.end.min(Seq(range.start.0.saturating_add(u64::from(limit))));
        let messages: Vec<Logged> = (range.start.0..)
            .map(Seq)
            .zip(self.slots(range.start, end))
            .map(|(seq, slot)| {
                let mut logged = Logged::new(seq, slot.entry.clone(), slot.hidden_by);
                logged.edited_by = slot.shortened.as_ref().map(|shortened| shortened.by);
                logged.pruned_by = self.pruned_by(slot);
                logged
            })
            .collect();
        let end = Seq(range.start.0.saturating_add(messages.len() as u64));
        LogPage::new(messages, rules::next_page(end, range.end, self.head()))
    }

    pub(crate) fn records(&self, after: Option<Revision>, limit: u32) -> Vec<Committed> {
        let from = self.records.partition_point(|kept| Some(kept.committed.revision) <= after);
        self.records.iter().skip(from).take(limit as usize).map(|kept| kept.committed.clone()).collect()
    }

    pub(crate) fn info(&self, id: &SessionId) -> SessionInfo {
        let mut info = SessionInfo::new(id.clone());
        let Counters { head, revision, live_messages, live_tokens, created, appended } = self.counters;
        (info.head, info.revision) = (head, revision);
        (info.live_messages, info.live_tokens) = (live_messages, live_tokens);
        (info.created, info.appended) = (created, appended);
        info
    }

    pub(crate) fn prunes(&self, after: Option<Revision>, limit: u32) -> Vec<Pruned> {
        let from = self.prunes.partition_point(|pruned| Some(pruned.revision) <= after);
        self.prunes.iter().skip(from).take(limit as usize).copied().collect()
    }

    pub(crate) fn appends(&self, from: Seq, limit: u32) -> Vec<LoggedAppend> {
        let begin = self.appends.partition_point(|logged| logged.appended.head <= from);
        self.appends.iter().skip(begin).take(limit as usize).cloned().collect()
    }

    /// The append under `token`, if there was one.
    pub(crate) fn receipt(&self, token: &AppendToken) -> Option<&LoggedAppend> {
        let at = usize::try_from(*self.receipts.get(token)?).ok()?;
        self.appends.get(at)
    }
}
