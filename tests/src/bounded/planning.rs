//! Plans, and the compactions and summaries that follow from them.

use epitome_core::attribution::SeqRange;
use epitome_core::message::{MessageView, SimpleMessage};
use epitome_core::{
    Budget, ClassEstimator, CompactError, Draft, Outcome, Pass, Protection, Seq, Strategy, TokenCounter,
    Tokens, Verdict, count_message,
};

use super::model::{Entry, Model, authority, said, shown};
use super::{History, Pair, Then};

/// Strategy that drops the groups and elides the results in its masks.
#[derive(Debug)]
pub(super) struct Masked {
    /// One bit a group.
    pub(super) drop: u32,
    /// One bit a result.
    pub(super) elide: u32,
}

/// Maximum tokens of a note.
const NOTE_TOKENS_MAX: Tokens = Tokens(4);

impl Strategy for Masked {
    fn name(&self) -> &'static str {
        "masked"
    }

    fn protection(&self) -> Protection {
        Protection::default().with_keep_steps(0)
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        // The draft refuses parts that are protected or not larger than a note.
        for part in draft.index().parts().filter(|part| self.elide >> (part.at() % 32) & 1 == 1) {
            let _ = draft.elide(&part, NOTE_TOKENS_MAX);
        }
        let leaders: Vec<u32> = draft.index().groups().map(|group| group.leader()).collect();
        for leader in leaders.into_iter().filter(|leader| self.drop >> (leader % 32) & 1 == 1) {
            let _ = draft.drop_group(leader);
        }
    }
}

pub(super) fn budget() -> Budget {
    Budget::builder().window(100_000).trigger(80_000).without_goal().build().unwrap()
}

impl Pair {
    pub(super) fn plan(&mut self, masks: &Masked, note: &str, then: Then) {
        let Planned { gone, elided, tokens_after } = planned(&mut self.history, &self.model, masks);
        let nothing = gone.is_empty() && elided.is_empty();
        if then == Then::Compact && !nothing {
            if !self.compact(&elided, note) {
                self.seen.notes_refused += 1;
                return;
            }
            self.model.entries.retain(|entry| !gone.contains(&entry.seq));
            self.model.elide(&elided, note);
            assert!(self.history.tokens() <= tokens_after);
            self.seen.compactions += 1;
            self.seen.elided += u32::try_from(elided.len()).unwrap();
        } else if let (Then::Summarize, Some(range)) = (then, self.history.span_to_summarize()) {
            let done = summarize(&mut self.history, &mut self.model, range, "s");
            self.seen.summaries += u32::from(done);
        }
    }

    /// Carries out a plan that elides these results. Returns whether it did: a refusal of the note must have a valid
    /// reason.
    fn compact(&mut self, elided: &[u64], note: &str) -> bool {
        let before = shown(&self.history);
        if elided.is_empty() {
            let done = self.history.compact().expect("there is a plan");
            assert_eq!(done.results, 0);
            return true;
        }
        assert_eq!(self.history.compact(), Err(CompactError::NoNote));
        assert_eq!(shown(&self.history), before);
        let tokens = ClassEstimator::new().count(note);
        let shorter = self.model.entries.iter().any(|entry| {
            elided.contains(&entry.seq) && entry.result().is_some_and(|text| text.len() < note.len())
        });
        match self.history.compact_with(note, &ClassEstimator::new()) {
            Ok(done) => {
                assert!(!note.trim().is_empty() && tokens <= NOTE_TOKENS_MAX);
                assert_eq!(done.results, elided.len());
                return true;
            }
            Err(CompactError::Blank) => assert!(note.trim().is_empty()),
            Err(CompactError::NoteTooLarge) => assert!(tokens > NOTE_TOKENS_MAX || shorter),
            Err(why) => panic!("{why}"),
        }
        assert_eq!(shown(&self.history), before);
        false
    }
}

impl Model {
    /// Puts the note in the place of these results.
    fn elide(&mut self, elided: &[u64], note: &str) {
        for entry in self.entries.iter_mut().filter(|entry| elided.contains(&entry.seq)) {
            let (before, _) = entry.said.split_once("<Text(").expect("a result");
            entry.said = format!("{before}<Text({note:?})>");
            entry.tokens = count_message(&SimpleMessage::result("", note), &ClassEstimator::new()).0;
            entry.elided = true;
        }
    }
}

/// The sequence numbers of the messages that a plan drops and elides, and the size after it.
struct Planned {
    gone: Vec<u64>,
    elided: Vec<u64>,
    tokens_after: u64,
}

fn planned(history: &mut History, model: &Model, masks: &Masked) -> Planned {
    let seq = |at: u32| model.entries[at as usize].seq;
    match history.plan(&budget(), Pass::Manual, masks) {
        Ok(Outcome::Planned(plan)) => {
            let gone = plan.index().groups().filter(|group| plan.verdict(group) == Verdict::Drop);
            let gone = gone.flat_map(|group| group.positions().flatten().collect::<Vec<_>>()).map(seq);
            let elided = plan.shortened().map(|(part, _)| seq(part.position()));
            Planned { gone: gone.collect(), elided: elided.collect(), tokens_after: plan.tokens_after() }
        }
        Ok(Outcome::Unchanged(_)) => Planned { gone: Vec::new(), elided: Vec::new(), tokens_after: 0 },
        Err(why) => panic!("{why}"),
    }
}

/// Summarizes a range in the history, and in the list if the history accepts. Returns whether it did.
pub(super) fn summarize(history: &mut History, model: &mut Model, range: SeqRange, text: &str) -> bool {
    let before = history.free_bytes();
    if history.summarize(range, text, &ClassEstimator::new()).is_err() {
        return false;
    }
    assert!(history.free_bytes() > before);
    let covered = |entry: &Entry| range.contains(Seq(entry.seq));
    let first = model.entries.iter().position(covered).unwrap();
    assert!(model.entries.iter().all(|entry| covered(entry) == range.contains(Seq(entry.anchor))));
    let seq = model.entries[first].seq;
    let turn = model.entries[first].turn;
    let lowest = model.entries.iter().filter(|entry| covered(entry)).map(authority).min().unwrap();
    model.entries.retain(|entry| !covered(entry));
    let summary = history.messages_in(SeqRange { first: Seq(seq), last: Seq(seq) }).next().unwrap();
    assert_eq!(summary.attribution().authority, lowest);
    let derived = summary.attribution().derived_from[0];
    assert!(derived.first.0 == seq && derived.last.0 >= seq);
    let entry =
        Entry { seq, anchor: seq, turn, tokens: summary.tokens().0, said: said(&summary), elided: false };
    assert!(entry.said.contains(text));
    model.entries.insert(first, entry);
    true
}
