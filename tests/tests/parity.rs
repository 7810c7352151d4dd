//! All kinds of tables give equal results, and an operation on a full table fails without a change.
#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

use epitome_core::message::PartView;
use epitome_core::{
    ArrayTable, Full, Group, GroupKind, IndexBuf, OpenCallSlots, OpenCallTree, OpenCalls, PartSpan,
    SliceTable, Span, Table, Tokens,
};
use epitome_tests::cases;
use epitome_tests::generate::conversation;
use epitome_tests::live::{self, Fixed, Tight};
use epitome_tests::message::Message;
use epitome_tests::scenario::{Scenario, scenario};
use proptest::prelude::*;

#[test]
fn every_table_gives_the_same_groups_and_plans() {
    let minimums =
        [("all fits in slots", 250), ("an id too long for slots", 100), ("too much for 8 slots", 20)];
    cases::check("parity", scenario(60), &minimums, |scenario, census| {
        let (heap, _) = live::index_of(&scenario.messages);
        let expected = (live::groups(heap.view()), live::plan(heap.view(), &scenario.request));
        let mut room = [Span::default(); 512];
        let mut rows = [PartSpan::default(); 2048];
        let (spans, parts) = (SliceTable::new(&mut room), SliceTable::new(&mut rows));
        let slice = IndexBuf::with_parts(spans, OpenCallTree::new(), parts);
        prop_assert_eq!(answers(slice, &scenario, usize::MAX), Some(expected.clone()));
        let array: IndexBuf<ArrayTable<Span, 512>, OpenCallTree, ArrayTable<PartSpan, 2048>> = live::empty();
        prop_assert_eq!(answers(array, &scenario, usize::MAX), Some(expected.clone()));
        let vector: IndexBuf<heapless::Vec<Span, 512>, OpenCallTree, heapless::Vec<PartSpan, 2048>> =
            live::empty();
        prop_assert_eq!(answers(vector, &scenario, usize::MAX), Some(expected.clone()));
        let (fixed, tight): (Fixed, Tight) = (live::empty(), live::empty());
        let fixed = answers(fixed, &scenario, 64);
        census.count("all fits in slots", fixed.is_some());
        census.count("an id too long for slots", ids(&scenario.messages).any(|id| id.len() > 64));
        prop_assert!(fixed.is_none_or(|fixed| fixed == expected));
        let tight = answers(tight, &scenario, 8);
        census.count("too much for 8 slots", tight.is_none());
        prop_assert!(tight.is_none_or(|tight| tight == expected));
        Ok(())
    });
}

/// An index with preliminary sizes that are corrected later equals an index with exact sizes from the beginning.
#[test]
fn sizes_that_are_corrected_are_as_if_they_had_been_right() {
    let minimums = [("a group of several runs", 250), ("an orphan", 250)];
    cases::check("recount", conversation(60), &minimums, |messages, census| {
        let (right, _) = live::index_of(&messages);
        let too_small = |message: &Message| Tokens(message.size().0 / 3);
        let mut index = live::empty::<Vec<Span>, OpenCallTree, Vec<PartSpan>>();
        for message in &messages {
            let parts = |at: u32, _: PartView<'_>| message.part_size(at as usize);
            index.push_with_parts(message, too_small(message), parts).unwrap();
        }
        for (position, message) in messages.iter().enumerate().rev() {
            index.recount(u32::try_from(position).unwrap(), too_small(message), message.size());
        }
        prop_assert_eq!(live::everything(&index), live::everything(&right));
        let runs = |group: &Group<'_>| group.positions().count();
        census.count("a group of several runs", right.view().groups().any(|group| runs(&group) > 1));
        census.count("an orphan", right.view().groups().any(|group| group.kind() == GroupKind::Orphan));
        Ok(())
    });
}

type Answers = (Vec<live::GroupFacts>, epitome_tests::naive::Outcome);

/// The groups and the plan of an index. `None` if an id is too long, or if more than `slots` calls wait at some time:
/// the index may then forget a call.
fn answers<S: Table<Span>, C: OpenCalls, P: Table<PartSpan>>(
    mut index: IndexBuf<S, C, P>,
    scenario: &Scenario,
    slots: usize,
) -> Option<Answers> {
    if slots < usize::MAX && ids(&scenario.messages).any(|id| id.len() > 64) {
        return None;
    }
    for message in &scenario.messages {
        let mut waiting = message.awaited().len();
        index.open_calls().for_each(&mut |_, _| waiting += 1);
        if waiting > slots {
            return None;
        }
        live::push(&mut index, message).unwrap();
    }
    Some((live::groups(index.view()), live::plan(index.view(), &scenario.request)))
}

#[test]
fn full_changes_nothing() {
    let minimums = [
        ("no room for a span", 150),
        ("no room for a part", 150),
        ("no room for a call", 80),
        ("a call was forgotten", 5),
    ];
    cases::check("full", (conversation(60), 1..7_usize), &minimums, |(messages, room), census| {
        let mut spans = vec![Span::default(); room * 3];
        let few_spans = IndexBuf::with_parts(SliceTable::new(&mut spans), OpenCallTree::new(), Vec::new());
        census.count("no room for a span", is_unchanged_when_full(few_spans, &messages)?);
        let mut spans = [Span::default(); 512];
        let few_calls = OpenCallSlots::<2>::new();
        let few_calls = IndexBuf::with_parts(SliceTable::new(&mut spans), few_calls, Vec::new());
        census.count("no room for a call", is_unchanged_when_full(few_calls, &messages)?);
        let mut parts = vec![PartSpan::default(); room * 2];
        let few_parts = IndexBuf::with_parts(Vec::new(), OpenCallTree::new(), SliceTable::new(&mut parts));
        census.count("no room for a part", is_unchanged_when_full(few_parts, &messages)?);
        let mut forgetful: IndexBuf<Vec<Span>, OpenCallSlots<4>, Vec<PartSpan>> = live::empty();
        let pushed = live::push_while_room(&mut forgetful, &messages);
        let (whole, _) = live::index_of(&messages[..pushed]);
        let forgot = live::groups(whole.view()) != live::groups(forgetful.view());
        census.count("a call was forgotten", forgot);
        Ok(())
    });
}

/// Pushes all messages, and continues after each refused one. The result must be as if the refused messages had never
/// been there. Returns whether a message was refused.
fn is_unchanged_when_full<S: Table<Span>, C: OpenCalls + Clone, P: Table<PartSpan>>(
    mut index: IndexBuf<S, C, P>,
    messages: &[Message],
) -> Result<bool, TestCaseError> {
    let mut taken = Vec::new();
    for message in messages {
        let before = live::everything(&index);
        match live::push(&mut index, message) {
            Ok(_) => taken.push(message.clone()),
            Err(Full) => prop_assert_eq!(live::everything(&index), before),
        }
    }
    let calls = emptied(index.open_calls());
    let mut anew = IndexBuf::with_parts(Vec::<Span>::new(), calls, Vec::<PartSpan>::new());
    for message in &taken {
        live::push(&mut anew, message).unwrap();
    }
    prop_assert_eq!(live::everything(&anew), live::everything(&index));
    Ok(taken.len() < messages.len())
}

fn emptied<C: OpenCalls + Clone>(calls: &C) -> C {
    let mut calls = calls.clone();
    calls.clear();
    calls
}

fn ids(messages: &[Message]) -> impl Iterator<Item = &str> {
    messages.iter().flat_map(Message::awaited).map(|(_, id)| id)
}
