//! Sessions of 200 turns with only the mappers, on a model that binds thinking: every request is accepted, and no fact
//! and no thinking is lost.

use epitome::compactors::managed::anthropic::{
    BackgroundSwap, ClearThinking, CompactionBlock, CompactionCode, ContextEdits, ON_DEMAND_BETA, Summarize,
    SummaryAnswer, Swapped, ThresholdCompaction, ThresholdOutcome, Ticket, choose_cut, replay, trim_to_block,
};
use serde_json::{Value, json};

use super::client::{answered, empty, post, push, user};
use crate::managed::support::block_on;

/// A conversation, and counters of its facts and compactions.
struct Talk {
    body: String,
    betas: Vec<&'static str>,
    facts: usize,
    compacted: usize,
    largest: usize,
    last: String,
}

impl Talk {
    fn new(betas: Vec<&'static str>) -> Self {
        Self { body: empty(), betas, facts: 0, compacted: 0, largest: 0, last: String::new() }
    }

    /// One turn: a question, a call, its result, an answer. `next` makes each request, and `seen` may change the kept
    /// messages after each answer.
    async fn turn(
        &mut self,
        faults: Option<(&str, &str)>,
        mut next: impl FnMut(&mut Self),
        mut seen: impl FnMut(&mut Self, &str),
    ) {
        self.body = push(&self.body, user(format!("question {}", self.facts)));
        loop {
            next(self);
            self.largest = self.largest.max(self.body.len());
            let (accepted, text) = post(&self.body, &self.betas, faults).await;
            assert!(accepted, "turn {}: {text}", self.facts);
            assert!(!text.contains("input_transformations"), "thinking was lost: {text}");
            let (answer, results) = answered(&text, self.facts);
            self.body = push(&self.body, answer);
            seen(self, &text);
            let paused = text.contains(r#""stop_reason":"compaction""#);
            match results {
                Some(results) => {
                    self.facts += 1;
                    self.body = push(&self.body, results);
                }
                None if paused => {}
                None => {
                    self.last = text;
                    return;
                }
            }
        }
    }

    async fn summary(&self, ask: &str) -> CompactionBlock {
        let (accepted, text) = post(ask, &self.betas, None).await;
        assert!(accepted, "{text}");
        match SummaryAnswer::read(&text).unwrap() {
            SummaryAnswer::Written(block) => block,
            other => panic!("{other:?}"),
        }
    }

    fn knows_all(&self) {
        let known = format!(", {} facts", self.facts);
        assert!(self.last.contains(&known), "{known} in {}", self.last);
    }
}

fn threshold(pause: bool, trim: bool) {
    let edits = ContextEdits::new()
        .with_thinking(ClearThinking::keep_all())
        .with_compaction(ThresholdCompaction::new().with_trigger(50_000).unwrap().with_pause(pause));
    let mut talk = Talk::new(edits.betas());
    block_on(async {
        for _ in 0..200 {
            let next = |talk: &mut Talk| talk.body = edits.apply(&talk.body).unwrap();
            let seen = |talk: &mut Talk, text: &str| match ThresholdOutcome::read(text).unwrap() {
                ThresholdOutcome::Compacted { paused, .. } => {
                    assert_eq!(paused, pause);
                    talk.compacted += 1;
                    if let Some(trimmed) = trim_to_block(&talk.body).unwrap().filter(|_| trim) {
                        talk.body = trimmed;
                    }
                }
                ThresholdOutcome::None => {}
                other => panic!("{other:?}"),
            };
            talk.turn(None, next, seen).await;
        }
    });
    talk.knows_all();
    assert!(talk.compacted >= 3, "{} compactions", talk.compacted);
    // A trigger of 50,000 tokens of a byte each, and the rest of the request.
    assert_eq!(talk.largest < 75_000, trim, "{} bytes", talk.largest);
}

#[test]
fn at_a_threshold() {
    threshold(false, true);
}

#[test]
fn at_a_threshold_with_a_pause() {
    threshold(true, true);
}

#[test]
fn at_a_threshold_with_the_whole_history_sent() {
    threshold(false, false);
}

#[test]
fn on_demand_with_recent_turns_kept() {
    let mut talk = Talk::new(vec![ON_DEMAND_BETA]);
    block_on(async {
        for turn in 1..=200 {
            talk.turn(None, |_| {}, |_, _| {}).await;
            if turn % 20 == 0 {
                let cut = choose_cut(&talk.body, 3).unwrap().unwrap();
                let block = talk.summary(&Summarize::new().request(&talk.body, cut).unwrap()).await;
                let swapped = replay(&talk.body, cut, &block).unwrap();
                let messages = |body: &str| serde_json::from_str::<Value>(body).unwrap()["messages"].clone();
                let kept = messages(&talk.body).as_array().unwrap()[cut..].to_vec();
                assert_eq!(messages(&swapped).as_array().unwrap()[1..], kept, "what is kept is as it was");
                assert!(kept.iter().any(|message| message.to_string().contains("thinking")));
                talk.body = swapped;
                talk.compacted += 1;
            }
        }
    });
    talk.knows_all();
    assert!(talk.largest < 60_000, "{} bytes", talk.largest);
}

#[test]
fn in_the_background() {
    let mut talk = Talk::new(vec![ON_DEMAND_BETA]);
    let mut swap = BackgroundSwap::new();
    let mut under_way: Option<(usize, Ticket, CompactionBlock)> = None;
    block_on(async {
        for turn in 1..=200 {
            let mut swapped = false;
            let next = |talk: &mut Talk| match swap.next_request(&talk.body).unwrap() {
                Swapped::Swapped { request, .. } => (talk.body, swapped) = (request, true),
                Swapped::Unchanged => {}
                other => panic!("{other:?}"),
            };
            talk.turn(None, next, |_, _| {}).await;
            talk.compacted += usize::from(swapped);
            match under_way.take_if(|(due, ..)| *due == turn) {
                // The summary arrives two turns after its request.
                Some((_, ticket, block)) => swap.arrive(ticket, block).unwrap(),
                None if turn % 20 == 0 => {
                    // The kept messages begin with the next message, which is the user's.
                    let cut = choose_cut(&talk.body, 0).unwrap().unwrap();
                    let ask = Summarize::new().request(&talk.body, cut).unwrap();
                    let ticket = swap.begin(&talk.body, cut).unwrap();
                    under_way = Some((turn + 2, ticket, talk.summary(&ask).await));
                }
                None => {}
            }
        }
    });
    talk.knows_all();
    assert_eq!(talk.compacted, 9, "all but the one of the last turn");
}

#[test]
fn a_compaction_that_fails_at_a_threshold_changes_nothing() {
    let edits = ContextEdits::new().with_compaction(ThresholdCompaction::new().with_trigger(50_000).unwrap());
    let mut talk = Talk::new(edits.betas());
    let (mut failed, mut turns) = (0, 0);
    block_on(async {
        while failed < 3 {
            let seen = |_: &mut Talk, text: &str| {
                let failure = ThresholdOutcome::read(text).unwrap() == ThresholdOutcome::Failed;
                failed += usize::from(failure);
            };
            let case = format!("threshold-{}-{turns}", std::process::id());
            let next = |talk: &mut Talk| talk.body = edits.apply(&talk.body).unwrap();
            talk.turn(Some((&case, "failed,failed,failed")), next, seen).await;
            assert_eq!(trim_to_block(&talk.body).unwrap(), None, "there is nothing to leave out");
            turns += 1;
            assert!(turns < 200);
        }
    });
    talk.knows_all();
}

/// The server refuses each request that the documents forbid, and the code of each refusal is read.
#[test]
fn what_is_refused_has_its_code() {
    let talk = block_on(async {
        let mut talk = Talk::new(vec![ON_DEMAND_BETA]);
        for _ in 0..3 {
            talk.turn(None, |_| {}, |_, _| {}).await;
        }
        talk
    });
    block_on(async {
        let cut = choose_cut(&talk.body, 1).unwrap().unwrap();
        let ask = Summarize::new().request(&talk.body, cut).unwrap();
        let good = replay(&talk.body, cut, &talk.summary(&ask).await).unwrap();
        let good = push(&good, user("and now?"));
        assert!(post(&good, &talk.betas, None).await.0);
        let changed = |pointer: &str, value: Value| {
            let mut body: Value = serde_json::from_str(&good).unwrap();
            *body.pointer_mut(pointer).unwrap() = value;
            body.to_string()
        };
        let messages = serde_json::from_str::<Value>(&good).unwrap()["messages"].as_array().unwrap().clone();
        let with = |at: usize, message: Value| {
            let mut messages = messages.clone();
            messages.insert(at, message);
            changed("/messages", messages.into())
        };
        let asking = |messages: &[Value]| {
            let mut body: Value = serde_json::from_str(&ask).unwrap();
            body["messages"] = messages.into();
            body.to_string()
        };
        let call = json!({"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "look", "input": {}}]});
        use CompactionCode as Code;
        let refused = [
            (changed("/messages/0/content/0/content", "other".into()), Some(Code::ContentMismatch)),
            (changed("/messages/0/content/0/signature", "other".into()), Some(Code::SignatureInvalid)),
            (changed("/messages/0/content/0/tool_changes", json!([])), Some(Code::ToolChangesMismatch)),
            (with(0, user("before")), Some(Code::BlockMisplaced)),
            (with(1, messages[0].clone()), Some(Code::BlockAmbiguous)),
            (asking(&[user("a"), call.clone()]), Some(Code::IncompleteTurn)),
            (asking(&[]), Some(Code::NothingToSummarize)),
            // Without the summary the kept messages are bound to another conversation.
            (changed("/messages/0", user("other")), None),
            (changed("/system", "Be verbose.".into()), None),
            (
                with(
                    messages.len(),
                    json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "r"}]}),
                ),
                None,
            ),
            (with(messages.len(), call), None),
        ];
        for (body, code) in refused {
            let (accepted, text) = post(&body, &talk.betas, None).await;
            assert!(!accepted, "{code:?}");
            assert_eq!(CompactionCode::read(&text), code, "{text}");
        }
        let (accepted, _) = post(&good, &[], None).await;
        assert!(!accepted, "without the beta");
    });
}

/// The remedies for thinking that is bound to another conversation are accepted where the plain request is not.
#[test]
fn each_remedy_is_accepted() {
    use epitome::compactors::managed::anthropic::{BINDING_BETA, drop_mismatched, strip_thinking};
    block_on(async {
        let mut talk = Talk::new(vec![ON_DEMAND_BETA]);
        for _ in 0..3 {
            talk.turn(None, |_| {}, |_, _| {}).await;
        }
        let mut body: Value = serde_json::from_str(&talk.body).unwrap();
        // The first turn is left out.
        body["messages"].as_array_mut().unwrap().drain(..4);
        let edited = push(&body.to_string(), user("and now?"));
        let (accepted, text) = post(&edited, &talk.betas, None).await;
        assert!(!accepted && text.contains("bound to a different conversation"), "{text}");
        assert!(post(&strip_thinking(&edited).unwrap(), &talk.betas, None).await.0);
        let betas = [ON_DEMAND_BETA, BINDING_BETA];
        let (accepted, text) = post(&drop_mismatched(&edited).unwrap(), &betas, None).await;
        assert!(accepted && text.contains("prefix_binding_mismatch"), "{text}");
    });
}
