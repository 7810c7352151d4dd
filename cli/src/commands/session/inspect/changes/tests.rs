//! The difference of any two revisions, compared with the store's own state at each of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use epitome::core::attribution::{Authority, SourceKind};
use epitome::core::{Basis, ClassEstimator, Seq, Tokens};
use epitome::history::{
    AppendToken, CompactionRecord, History, HistoryStore as _, HistoryStoreExt as _, Live, MemoryStore,
    MessageEdit, PartStandIn, SessionId, TokenCount,
};
use epitome::message::{Attribution, Message};
use futures::executor::block_on;
use proptest::prelude::*;

use super::*;

/// State at a revision, as the store reports it.
#[derive(Debug, Default)]
struct Said {
    hidden: BTreeSet<u64>,
    edited: BTreeMap<u64, u64>,
    /// Key and text of each summary.
    summaries: BTreeSet<(u64, String)>,
}

struct Session {
    store: Arc<MemoryStore>,
    id: SessionId,
    at: BTreeMap<u64, Said>,
}

fn count(tokens: u32) -> TokenCount {
    TokenCount::new(Tokens(tokens), Basis::Estimated, "test".into())
}

fn covered(live: &Live) -> Vec<SeqRange> {
    match live.covers.is_empty() {
        true => vec![SeqRange { first: live.key, last: live.key }],
        false => live.covers.clone(),
    }
}

fn text(message: &Message) -> String {
    message.text().into_owned()
}

impl Session {
    fn new() -> Self {
        Self { store: Arc::new(MemoryStore::new()), id: SessionId::new("s"), at: BTreeMap::new() }
    }

    fn history(&self) -> History {
        block_on(History::open(self.store.clone(), self.id.clone(), Arc::new(ClassEstimator::new()))).unwrap()
    }

    fn records(&self) -> Vec<Committed> {
        block_on(self.store.records(&self.id, None, u32::MAX)).unwrap()
    }

    /// Performs one step; a step that the store refuses changes nothing.
    fn step(&mut self, (what, from, to): (u8, usize, usize)) {
        let mut history = self.history();
        let live = history.live().to_vec();
        let (head, revision) = (history.head(), history.revision());
        let visible = live.get(from % (live.len() + 1)..).unwrap_or_default();
        let mut record = CompactionRecord::new(revision, head);
        match what {
            0..=2 => {
                let said = (0..=from % 3).map(|at| match (head.0 as usize + at).is_multiple_of(2) {
                    true => Message::user(format!("question {head} {at}")),
                    false => Message::assistant(format!("answer {head} {at} ").repeat(20)),
                });
                let _ = block_on(history.append(&AppendToken::new(head.to_string()), said.collect()));
            }
            3..=5 => {
                let gone = visible.get(..1 + to % 4).unwrap_or(visible);
                let mut ranges: Vec<_> = gone.iter().flat_map(covered).collect();
                ranges.dedup_by(|next, kept| {
                    let meets = next.first <= kept.last.next();
                    if meets {
                        kept.last = next.last;
                    }
                    meets
                });
                if let (5, Some(first)) = (what, ranges.first()) {
                    let attribution = Attribution::new("test", SourceKind::Compaction, Authority::Retrieved);
                    let message = Message::assistant(format!("summary {revision}"))
                        .with_attribution(attribution.with_derived_from(ranges.clone()));
                    record.summaries.push(Summary::new(first.first, message, count(2)));
                }
                record.hides = ranges;
                let _ = block_on(self.store.commit(&self.id, &record));
            }
            6 => {
                let short = PartStandIn::new(0, Some(format!("cut {revision}").into()));
                let edited = visible.iter().find(|live| live.covers.is_empty() && live.key.0 % 2 == 1);
                record.edits.extend(edited.map(|live| MessageEdit::new(live.key, vec![short], count(2))));
                let _ = block_on(self.store.commit(&self.id, &record));
            }
            7 => {
                if let Ok(Some(latest)) = block_on(self.store.latest_compaction(&self.id)) {
                    block_on(self.store.uncompact(&self.id, latest.revision)).unwrap();
                }
            }
            _ => drop(block_on(self.store.rewind(&self.id, Seq(head.0.saturating_sub(1 + to as u64 % 3))))),
        }
        self.note();
    }

    fn note(&mut self) {
        let Ok(loaded) = block_on(self.store.load(&self.id)) else { return };
        let log = block_on(self.store.log(&self.id, Seq(0)..loaded.head, u32::MAX)).unwrap().messages;
        let hidden = log.iter().filter(|logged| logged.hidden_by.is_some());
        let edited = log.iter().filter(|logged| logged.hidden_by.is_none());
        let summaries = loaded.live.iter().filter(|live| !live.covers.is_empty());
        let said = Said {
            hidden: hidden.map(|logged| logged.seq.0).collect(),
            edited: edited.filter_map(|logged| Some((logged.seq.0, logged.edited_by?.0))).collect(),
            summaries: summaries.map(|live| (live.key.0, text(&live.entry.message))).collect(),
        };
        self.at.insert(loaded.revision.0, said);
    }
}

fn each(ranges: &[(u64, u64)]) -> BTreeSet<u64> {
    ranges.iter().flat_map(|(first, last)| *first..=*last).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn differences_are_what_the_store_said(steps in prop::collection::vec((0_u8..9, 0_usize..40, 0_usize..40), 1..40)) {
        let mut session = Session::new();
        steps.into_iter().for_each(|step| session.step(step));
        prop_assume!(!session.at.is_empty());
        let records = session.records();
        for (from, before) in &session.at {
            for (to, after) in session.at.range(from..) {
                let found = Difference::of(&records, *from, *to);
                prop_assert_eq!(each(&found.hidden), &after.hidden - &before.hidden);
                prop_assert_eq!(&each(&found.hidden_at_end), &after.hidden);
                prop_assert_eq!(each(&found.shown), &before.hidden - &after.hidden);
                let shortened = after.edited.iter().filter(|(seq, by)| before.edited.get(seq) != Some(by));
                prop_assert_eq!(&found.shortened, &shortened.map(|(seq, _)| *seq).collect::<Vec<_>>());
                let whole = before.edited.keys().filter(|seq| !after.edited.contains_key(seq) && !after.hidden.contains(seq));
                prop_assert_eq!(&found.whole, &whole.copied().collect::<Vec<_>>());
                let [gone, new] = [false, true].map(|is_new| {
                    let changed = found.summaries.iter().filter(move |it| it.is_new == is_new);
                    let texts = changed.map(|it| (it.key, text(&summary(&records, it.revision, it.key).unwrap().message)));
                    texts.collect::<BTreeSet<_>>()
                });
                prop_assert_eq!(gone, &before.summaries - &after.summaries);
                prop_assert_eq!(new, &after.summaries - &before.summaries);
            }
        }
    }

    #[test]
    fn ranges_without_others(one in ranges(), other in ranges()) {
        let all = |ranges: &[SeqRange]| each(&ranges.iter().map(|it| (it.first.0, it.last.0)).collect::<Vec<_>>());
        let left = without(&one, &other);
        prop_assert!(left.is_sorted() && left.iter().all(|(first, last)| first <= last));
        prop_assert_eq!(each(&left), &all(&one) - &all(&other));
    }
}

/// Ascending ranges with gaps between them.
fn ranges() -> impl Strategy<Value = Vec<SeqRange>> {
    prop::collection::vec((1_u64..4, 1_u64..6), 0..8).prop_map(|lengths| {
        let mut at = 0;
        let range = |(gap, length): (u64, u64)| {
            let first = at + gap;
            at = first + length;
            SeqRange { first: Seq(first), last: Seq(at - 1) }
        };
        lengths.into_iter().map(range).collect()
    })
}
