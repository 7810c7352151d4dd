//! The cases. They are small, because every instruction takes fifty times as long under valgrind.

use std::sync::Arc;

use epitome::core::attribution::SeqRange;
use epitome::core::message::Role;
use epitome::core::{Budget, ClassEstimator, Head, Index, Seq, TokenCounter, Tokens, Trigger, TriggerView};
use epitome::history::{Append, AppendToken, CompactionRecord, HistoryStore, MemoryStore, SessionId};
use epitome::tokens::FastTiktoken;
use epitome::wire::{Format, ReadOptions, Transcript, read, write_back};
use epitome_benches::generated::{Message, Messages, Pool, sizes, write_json};
use epitome_benches::steps;
use futures::executor::block_on;

/// A step whose instructions are counted.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) why: &'static str,
    /// Prepares the step and passes it to the measurement. The result of the step depends on all of its work.
    pub(crate) run: fn(&mut Measure<'_>),
}

/// The measurement of a step.
pub(crate) type Measure<'a> = dyn FnMut(&mut dyn FnMut() -> u64) + 'a;

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "push",
        why: "shows grouping of counted messages; matters because every message is pushed once in each process",
        run: |measure| {
            with_history(|history, tokens| measure(&mut || steps::group(history, tokens).view().tokens()));
        },
    },
    Case {
        name: "push with parts",
        why: "shows the same with a row for each part; matters where plans shorten parts",
        run: |measure| {
            with_history(|history, tokens| {
                measure(&mut || steps::group_with_parts(history, tokens).view().part_count() as u64);
            });
        },
    },
    Case {
        name: "plan",
        why: "shows a truncation; matters because it stands between a user and the next request",
        run: |measure| {
            with_history(|history, tokens| {
                let index = steps::group(history, tokens);
                measure(&mut || steps::planned(index.view(), |plan| plan.tokens_after()));
            });
        },
    },
    Case {
        name: "plan to clear results",
        why: "shows verdicts on parts; matters as the truncation does",
        run: |measure| {
            with_history(|history, tokens| {
                let index = steps::group_with_parts(history, tokens);
                measure(&mut || steps::cleared(index.view()));
            });
        },
    },
    Case {
        name: "project",
        why: "shows the order of the messages of a request; matters because every request is one",
        run: |measure| {
            with_history(|history, tokens| {
                let index = steps::group(history, tokens);
                measure(&mut || index.view().projection().flatten().map(u64::from).sum());
            });
        },
    },
    Case {
        name: "validate",
        why: "shows the rules of a provider; matters because every request is checked",
        run: |measure| {
            with_history(|history, _| {
                measure(&mut || history.len() as u64 - steps::violations(history.iter()) as u64);
            });
        },
    },
    Case {
        name: "untriggered check",
        why: "shows what is asked before a call that needs no compaction; matters because it is asked before every call",
        run: |measure| {
            with_history(|history, tokens| {
                let index = steps::group(history, tokens);
                measure(&mut || checks(index.view()));
            });
        },
    },
    Case {
        name: "estimate",
        why: "shows the estimator; matters because every message is sized on entry",
        run: |measure| with_texts(|texts| measure(&mut || counted(texts, &ClassEstimator::new()))),
    },
    Case {
        name: "count",
        why: "shows the exact counter on texts that it has seen; matters where budgets are exact",
        run: |measure| {
            with_texts(|texts| {
                let counter = FastTiktoken::o200k_base();
                // Loads the vocabulary.
                counted(texts, &counter);
                measure(&mut || counted(texts, &counter));
            });
        },
    },
    Case {
        name: "read",
        why: "shows a request of Chat Completions being read; matters because that is most of what the program does",
        run: |measure| {
            let text = chat();
            measure(&mut || transcript(&text).conversations().len() as u64);
        },
    },
    Case {
        name: "write",
        why: "shows the same being written back; matters as reading does",
        run: |measure| {
            let text = chat();
            let transcript = transcript(&text);
            measure(&mut || {
                let mut out = Vec::with_capacity(text.len());
                write_back(&transcript, &mut out).unwrap();
                out.len() as u64
            });
        },
    },
    Case {
        name: "append, commit and load",
        why: "shows a store in memory: a step of a run, a compaction, and what a new process sees; matters because every run \
              does the first and the last",
        run: stored,
    },
];

fn with_history(step: impl FnOnce(&[Message<'_>], &[Tokens])) {
    let pool = Pool::new();
    let history: Vec<_> = Messages::new(&pool, SEED).take(MESSAGES).collect();
    step(&history, &sizes(&history));
}

fn with_texts(step: impl FnOnce(&[&str])) {
    let pool = Pool::new();
    let texts: Vec<_> = Messages::new(&pool, SEED).take(TEXTS).map(|message| message.text()).collect();
    step(&texts);
}

fn counted(texts: &[&str], counter: &dyn TokenCounter) -> u64 {
    texts.iter().map(|text| counter.count(text).as_u64()).sum()
}

/// Number of sizes that do not fire the trigger: all of them.
fn checks(index: Index<'_>) -> u64 {
    let (trigger, budget) = (Trigger::default(), Budget::default());
    let check = |size: &u64| !trigger.is_due(&TriggerView::new(index, &budget, *size));
    (0..CHECKS).filter(check).count() as u64
}

fn chat() -> Arc<str> {
    let mut text = Vec::new();
    write_json(Messages::new(&Pool::new(), SEED).take(TEXTS), &mut text).unwrap();
    Arc::from(String::from_utf8(text).unwrap())
}

fn transcript(text: &Arc<str>) -> Transcript {
    read(Arc::clone(text), &ReadOptions::default().with_from(Format::OpenaiChat)).unwrap()
}

fn stored(measure: &mut Measure<'_>) {
    let pool = Pool::new();
    let history: Vec<_> = Messages::new(&pool, SEED).take(TEXTS).collect();
    let entries = steps::entries(&history);
    // The second half begins at the beginning of a turn.
    let is_user = |at: &usize| entries.get(*at).is_some_and(|entry| entry.message.role() == Role::User);
    let half = (TEXTS / 2..TEXTS).find(is_user).unwrap();
    let (id, store) = (SessionId::new("gate"), MemoryStore::new());
    measure(&mut || {
        let mut head = Head::default();
        for (at, batch) in entries.chunks(BATCH).enumerate() {
            let token = AppendToken::new(format!("{at}"));
            head = block_on(store.append(&id, &Append::new(&token, head, batch))).unwrap().head;
        }
        let mut record = CompactionRecord::new(Default::default(), head);
        record.hides.push(SeqRange { first: Seq(1), last: Seq(half as u64 - 1) });
        block_on(store.commit(&id, &record)).unwrap();
        block_on(store.load(&id)).unwrap().live.len() as u64
    });
}

const SEED: u64 = 1;
/// Number of messages of the history that is grouped and planned.
const MESSAGES: usize = 5_000;
/// Number of messages of the histories whose texts are read, counted or stored.
const TEXTS: usize = 1_000;
/// Number of messages appended at once: a turn.
const BATCH: usize = 4;
/// Number of checks whether a compaction is due.
const CHECKS: u64 = 10_000;
