//! Properties of decisions, on a session that consists only of its facts.

use epitome_core::attribution::SeqRange;
use epitome_core::{Basis, Revision, Seq, Tokens, Turn};
use epitome_message::Message;
use proptest::collection::vec;
use proptest::prelude::*;

use super::super::{
    Changes, Counters, Edited, Made, Op, Prunable, Receipt, Reply, SaidBefore, SummaryPlace, Visible,
};
use super::{Decision, Facts, Needs, decide, needs};
use crate::rules::Restored;
use crate::rules::{Anchor, Standing, VisibleMessage};
use crate::{
    Append, AppendToken, Appended, CompactionRecord, Entry, MessageEdit, PartStandIn, Pruned, RecordId,
    StoreError, StoreErrorKind, TokenCount,
};

/// A session as a list of messages without groups or summaries. Only the changes of decisions modify it.
#[derive(Clone, Default, Debug, PartialEq)]
struct Session {
    counters: Counters,
    messages: Vec<Kept>,
    appends: Vec<(AppendToken, Appended)>,
    records: Vec<(Revision, RecordId, CompactionRecord, Option<Revision>)>,
    prunes: Vec<Pruned>,
}

#[derive(Clone, Debug, PartialEq)]
struct Kept {
    entry: Entry,
    hidden_by: Option<Revision>,
    shortened: Option<Restored>,
    is_pruned: bool,
}

impl Session {
    fn facts(&self, needs: &Needs<'_>, facts: &mut Facts) {
        facts.session = (!self.appends.is_empty()).then_some(self.counters);
        if let Some((token, entries)) = needs.receipt {
            let known = self.appends.iter().find(|(known, _)| known == token);
            facts.receipt = known
                .map(|(_, appended)| Receipt { appended: *appended, said: self.said(*appended, entries) });
        }
        let at = |seq: &Seq| self.messages.get(seq.0 as usize);
        let anchor =
            |seq: &Seq| Some((*seq, Anchor { anchor: at(seq)?.entry.anchor, hidden_by: at(seq)?.hidden_by }));
        facts.anchors.extend(needs.anchors.iter().filter_map(anchor));
        facts.calls = Some(Vec::new());
        if needs.visible {
            facts.visible = Visible { messages: self.seen(None), summaries: Vec::new() };
        }
        let edited = |seq: &Seq| {
            let Kept { entry, shortened, .. } = at(seq)?.clone();
            Some(Edited { seq: *seq, message: entry.message, whole: entry.count, shortened })
        };
        facts.edited.extend(needs.edited.iter().filter_map(edited));
        if let Some(revision) = needs.record_id {
            facts.record_id = self.records.iter().find(|record| record.0 == revision).map(|record| record.1);
        }
        if let Some(made) = needs.made {
            let hidden = Visible { messages: self.seen(Some(made)), summaries: Vec::new() };
            let record = self.records.iter().find(|record| record.0 == made);
            let pruned_since = self.prunes.iter().any(|it| it.revision > made && it.through >= made);
            facts.made = record.map(|record| Made {
                record: record.2.clone(),
                undone_by: record.3,
                pruned_since,
                hidden,
            });
            facts.latest_held =
                self.records.iter().rev().find(|record| record.3.is_none()).map(|record| record.0);
        }
        if let Some((before, seqs)) = &needs.earlier_edits {
            let held = self.records.iter().filter(|record| record.3.is_none() && record.0 < *before);
            let edits = held.flat_map(|record| record.2.edits.iter().map(|edit| (record.0, edit.clone())));
            facts.earlier_edits = Some(edits.filter(|(_, edit)| seqs.contains(&edit.seq)).collect());
        }
        if let Some(through) = needs.prunable {
            let due = |kept: &Kept| !kept.is_pruned && kept.hidden_by.is_some_and(|by| by <= through);
            let messages = (0..).map(Seq).zip(&self.messages).filter(|(_, kept)| due(kept));
            let before = self.prunes.iter().rev().find(|pruned| pruned.through == through).copied();
            let summaries: Vec<SummaryPlace> = Vec::new();
            facts.prunable = Prunable { messages: messages.map(|(seq, _)| seq).collect(), summaries, before };
        }
    }

    fn said(&self, appended: Appended, entries: &[Entry]) -> SaidBefore {
        let known = &self.messages[appended.first.0 as usize..appended.head.0 as usize];
        if known.iter().any(|kept| kept.is_pruned) {
            SaidBefore::Pruned
        } else if known.iter().map(|kept| &kept.entry.message).eq(entries.iter().map(|entry| &entry.message))
        {
            SaidBefore::Same
        } else {
            SaidBefore::Other
        }
    }

    fn seen(&self, hidden_by: Option<Revision>) -> Vec<VisibleMessage> {
        let all = (0..).map(Seq).zip(&self.messages).filter(|(_, kept)| kept.hidden_by == hidden_by);
        let seen = |(seq, kept): (Seq, &Kept)| VisibleMessage {
            seq,
            anchor: kept.entry.anchor,
            tokens: kept
                .shortened
                .as_ref()
                .map_or(kept.entry.count.tokens, |shortened| shortened.count.tokens),
            standing: Standing::of(&kept.entry.message),
        };
        all.map(seen).collect()
    }

    fn apply(&mut self, changes: &Changes<'_>) {
        let by = changes.after.revision;
        if let Some(insert) = &changes.insert {
            for (_, entry, hidden_by) in insert.placed() {
                let entry = entry.clone();
                self.messages.push(Kept { entry, hidden_by, shortened: None, is_pruned: false });
            }
            self.appends.push((insert.token.clone(), insert.appended));
        }
        for seq in &changes.hide {
            self.messages[seq.0 as usize].hidden_by = Some(by);
        }
        for seq in &changes.show {
            self.messages[seq.0 as usize].hidden_by = None;
        }
        for (seq, restored) in &changes.edits {
            self.messages[seq.0 as usize].shortened.clone_from(restored);
        }
        if let Some(new) = &changes.record {
            self.records.push((by, new.id, new.record.clone(), None));
        }
        if let Some(made) = changes.undone {
            self.records.iter_mut().find(|record| record.0 == made).unwrap().3 = Some(by);
        }
        if let Some(prune) = &changes.pruned {
            for seq in prune.messages {
                self.messages[seq.0 as usize].is_pruned = true;
            }
            self.prunes.push(prune.pruned);
        }
        self.counters = changes.after;
    }

    fn execute(&mut self, op: Op<'_>) -> Result<Reply, StoreError> {
        let mut facts = Facts::default();
        self.facts(&needs(&op), &mut facts);
        loop {
            match decide(&op, &facts)? {
                Decision::Answer(reply) => return Ok(reply),
                Decision::Ask(more) => self.facts(&more, &mut facts),
                Decision::Change(changes, reply) => {
                    self.apply(&changes);
                    self.check();
                    return Ok(reply);
                }
            }
        }
    }

    /// Checks that the counters are those of the visible messages.
    fn check(&self) {
        let seen = self.seen(None);
        let tokens: u64 = seen.iter().map(|message| message.tokens.as_u64()).sum();
        assert_eq!(self.counters.head, Seq(self.messages.len() as u64));
        assert_eq!((self.counters.live_messages, self.counters.live_tokens), (seen.len() as u64, tokens));
    }

    /// The messages that a load shows.
    fn shown(&self) -> Vec<(VisibleSeq, Option<Restored>)> {
        let all = (0..).zip(&self.messages).filter(|(_, kept)| kept.hidden_by.is_none());
        all.map(|(seq, kept)| (seq, kept.shortened.clone())).collect()
    }
}

type VisibleSeq = u64;

/// One operation. Places are given in 256ths of all places.
#[derive(Debug, Clone)]
enum Step {
    Append(u8),
    Hide(u8, u8),
    Shorten(u8),
    Undo(u8),
    Prune(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1_u8..4).prop_map(Step::Append),
        3 => any::<(u8, u8)>().prop_map(|(from, to)| Step::Hide(from, to)),
        2 => any::<u8>().prop_map(Step::Shorten),
        3 => any::<u8>().prop_map(Step::Undo),
        1 => any::<u8>().prop_map(Step::Prune),
    ]
}

fn count(tokens: u32) -> TokenCount {
    TokenCount::new(Tokens(tokens), Basis::Estimated, "test".into())
}

fn entries(head: u64, many: u8) -> Vec<Entry> {
    let entry = |seq| Entry::new(Message::assistant(format!("message {seq}")), Seq(seq), Turn(1), count(10));
    (head..head + u64::from(many)).map(entry).collect()
}

fn place(at: u8, of: usize) -> u64 {
    (usize::from(at) * of / 256) as u64
}

/// Applies an operation, and then applies it once more.
fn twice(session: &mut Session, op: Op<'_>) -> Option<Reply> {
    let before = session.clone();
    let first = session.execute(op);
    let after = session.clone();
    match first {
        Ok(reply) => {
            assert_eq!(
                session.execute(op).unwrap(),
                reply,
                "{op:?} is answered in another way the second time"
            );
            assert_eq!(*session, after, "{op:?} changes something the second time");
            Some(reply)
        }
        Err(_) => {
            assert_eq!(after, before, "{op:?} was refused, and has changed something");
            None
        }
    }
}

fn take(session: &mut Session, step: &Step) -> Option<Reply> {
    let (head, revision) = (session.counters.head, session.counters.revision);
    match *step {
        Step::Append(many) => {
            let (token, entries) = (AppendToken::new(head.0.to_string()), entries(head.0, many));
            twice(session, Op::Append(Append::new(&token, head, &entries), None))
        }
        Step::Hide(from, to) => {
            let mut record = CompactionRecord::new(revision, head);
            let (from, to) = (place(from, session.messages.len()), place(to, session.messages.len()));
            record.hides = vec![SeqRange { first: Seq(from.min(to)), last: Seq(from.max(to)) }];
            twice(session, Op::commit(&record).unwrap())
        }
        Step::Shorten(at) => {
            let mut record = CompactionRecord::new(revision, head);
            let seq = place(at, session.messages.len());
            let shown =
                session.messages.get(seq as usize)?.shortened.as_ref().map_or(10, |it| it.count.tokens.0);
            let stand_in = PartStandIn::new(0, Some(format!("-{shown}").into()));
            record.edits = vec![MessageEdit::new(Seq(seq), vec![stand_in], count(shown.saturating_sub(1)))];
            twice(session, Op::commit(&record).unwrap())
        }
        Step::Undo(at) => {
            let made = session.records.get(place(at, session.records.len()) as usize)?.0;
            twice(session, Op::Uncompact(made))
        }
        Step::Prune(at) => twice(session, Op::Prune(Revision(u64::from(at) * (revision.0 + 1) / 256))),
    }
}

proptest! {
    #[test]
    fn an_operation_that_is_applied_twice_is_applied_once(steps in vec(step(), 1..40)) {
        let mut session = Session::default();
        for step in &steps {
            take(&mut session, step);
        }
    }

    #[test]
    fn an_undoing_shows_what_was_shown_before(steps in vec(step(), 1..30), last in step()) {
        let mut session = Session::default();
        for step in &steps {
            take(&mut session, step);
        }
        let (before, records) = (session.clone(), session.records.len());
        take(&mut session, &last);
        if session.records.len() > records {
            let made = session.counters.revision;
            session.execute(Op::Uncompact(made)).unwrap();
            prop_assert_eq!(session.shown(), before.shown());
            prop_assert_eq!(session.counters.live_tokens, before.counters.live_tokens);
        }
    }

    #[test]
    fn an_append_commutes_with_undoings_and_prunes(
        steps in vec(step(), 1..30),
        last in prop_oneof![any::<u8>().prop_map(Step::Undo), any::<u8>().prop_map(Step::Prune)],
        many in 1_u8..4,
    ) {
        let mut session = Session::default();
        for step in &steps {
            take(&mut session, step);
        }
        take(&mut session, &Step::Append(1));
        let mut other = session.clone();
        let reply = take(&mut session, &last);
        take(&mut session, &Step::Append(many));
        take(&mut other, &Step::Append(many));
        let again = take(&mut other, &last);
        prop_assert_eq!(again, reply);
        // Everything except the revision in the answer of the append.
        session.appends.clear();
        other.appends.clear();
        prop_assert_eq!(session, other);
    }

    #[test]
    fn an_append_commutes_with_a_commit(steps in vec(step(), 1..30), from: u8, to: u8) {
        let mut session = Session::default();
        for step in &steps {
            take(&mut session, step);
        }
        take(&mut session, &Step::Append(1));
        let mut record = CompactionRecord::new(session.counters.revision, session.counters.head);
        let (from, to) = (place(from, session.messages.len()), place(to, session.messages.len()));
        record.hides = vec![SeqRange { first: Seq(from.min(to)), last: Seq(from.max(to)) }];
        let op = Op::commit(&record).unwrap();
        let mut other = session.clone();
        let reply = session.execute(op);
        take(&mut session, &Step::Append(1));
        take(&mut other, &Step::Append(1));
        match (reply, other.execute(op)) {
            (Ok(one), Ok(another)) => prop_assert_eq!(one, another),
            (Err(one), Err(another)) => prop_assert_eq!(one.kind(), another.kind()),
            (one, another) => prop_assert!(false, "{one:?} {another:?}"),
        }
        prop_assert_eq!(session.shown(), other.shown());
    }
}

#[test]
fn a_head_or_a_revision_that_has_moved_is_a_conflict() {
    let mut session = Session::default();
    let mut op = |token: &str, head| {
        let (token, entries) = (AppendToken::new(token), entries(head, 1));
        session
            .execute(Op::Append(Append::new(&token, Seq(head), &entries), None))
            .map_err(|error| error.kind())
    };
    op("1", 0).unwrap();
    assert_eq!(op("2", 0).unwrap_err(), StoreErrorKind::Conflict);
    assert_eq!(op("2", 2).unwrap_err(), StoreErrorKind::Conflict);
    op("2", 1).unwrap();
    let hide = |session: &mut Session, parent| {
        let mut record = CompactionRecord::new(Revision(parent), Seq(2));
        record.hides = vec![SeqRange { first: Seq(parent), last: Seq(parent) }];
        session.execute(Op::commit(&record).unwrap()).map_err(|error| error.kind())
    };
    hide(&mut session, 0).unwrap();
    assert_eq!(hide(&mut session, 2).unwrap_err(), StoreErrorKind::Conflict);
    hide(&mut session, 1).unwrap();
    let undo = session.execute(Op::Uncompact(Revision(1))).unwrap_err();
    assert_eq!(undo.kind(), StoreErrorKind::Conflict, "the latest record is undone first");
}
