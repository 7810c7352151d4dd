//! `epitome diff`: compares two transcripts side by side.

use core::fmt::Write as _;
use core::hash::{Hash as _, Hasher as _};
use core::ops::Range;
use std::collections::HashMap;
use std::hash::DefaultHasher;
use std::path::Path;

use epitome::core::message::{MessageView, PartView, Parts, Role};
use epitome::core::{ClassEstimator, count_message};
use serde::Serialize;

use crate::amount::{counted, grouped};
use crate::args::{DiffArgs, InputArgs};
use crate::failure::{ExitCode, Result};
use crate::output::{self, to_json};
use crate::transcript::Input;
use crate::visible::{line, without_base64};

/// The compared and shown facts about a message.
#[derive(Debug)]
struct Side {
    role: Role,
    tokens: u64,
    /// Hash of all contents.
    whole: u64,
    /// Hash of the parts that a shortened message keeps: its role, its ids, or its beginning.
    frame: u64,
    beginning: String,
}

/// One row: a message of the first transcript, of the second, or of both.
#[derive(Debug, Serialize)]
struct Row {
    /// `=` the same, `~` changed, `<` only in the first, `>` only in the second.
    sign: char,
    #[serde(skip_serializing_if = "Option::is_none")]
    a: Option<Place>,
    #[serde(skip_serializing_if = "Option::is_none")]
    b: Option<Place>,
}

#[derive(Debug, Clone, Serialize)]
struct Place {
    at: usize,
    role: &'static str,
    tokens: u64,
    #[serde(skip)]
    beginning: String,
}

/// The comparison of two transcripts.
#[derive(Debug, Serialize)]
struct Comparison {
    same: usize,
    changed: usize,
    only_a: usize,
    only_b: usize,
    tokens_a: u64,
    tokens_b: u64,
    /// Number of equal messages at the beginning: a prompt cache still covers them.
    stable_prefix_messages: usize,
    rows: Vec<Row>,
}

pub(crate) fn run(args: &DiffArgs) -> Result<ExitCode> {
    let (a, b) = (sides(&input(args, &args.file))?, sides(&input(args, &args.other))?);
    let compared = compare(&a, &b);
    let text = match args.json {
        true => to_json(&compared)?,
        false => compared.to_text(),
    };
    output::say(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn input(args: &DiffArgs, file: &Path) -> InputArgs {
    InputArgs { project: args.project.clone(), ..args.part.of(file) }
}

fn sides(args: &InputArgs) -> Result<Vec<Side>> {
    let input = Input::open(args)?;
    let (mut all, counter) = (Vec::new(), ClassEstimator::new());
    input.conversation(args)?.for_each(|message| {
        let tokens = count_message(message, &counter).as_u64();
        all.push(Side::new(message, tokens));
        Ok(())
    })?;
    Ok(all)
}

impl Side {
    fn new(message: &impl MessageView, tokens: u64) -> Self {
        let (mut whole, mut ids, mut beginning) = (DefaultHasher::new(), DefaultHasher::new(), String::new());
        let mut named = false;
        message.role().as_str().hash(&mut whole);
        message.role().as_str().hash(&mut ids);
        visit(message, &mut |part| {
            match part {
                PartView::ToolCall(call) => (call.id, call.name).hash(&mut ids),
                PartView::ToolResult(result) => result.call_id.hash(&mut ids),
                _ => {}
            }
            named |= matches!(part, PartView::ToolCall(_) | PartView::ToolResult(_));
            said(part, &mut whole, &mut beginning);
        });
        if !named {
            beginning.chars().take(FRAME_CHARS).for_each(|one| one.hash(&mut ids));
        }
        Self { role: message.role(), tokens, whole: whole.finish(), frame: ids.finish(), beginning }
    }

    fn place(&self, at: usize) -> Place {
        Place { at, role: self.role.as_str(), tokens: self.tokens, beginning: self.beginning.clone() }
    }
}

/// Length of the beginning of a text that identifies it, if no id does.
const FRAME_CHARS: usize = 24;
/// Length of the beginning of a text that is shown.
const SHOWN_CHARS: usize = 28;

/// Visits all parts, and the parts of results too.
fn visit(parts: &(impl Parts + ?Sized), see: &mut dyn FnMut(PartView<'_>)) {
    parts.for_each_part(&mut |part| {
        see(part);
        if let PartView::ToolResult(result) = part {
            result.content.for_each_part(see);
        }
    });
}

/// Adds the content of a part to the hash and to the beginning.
fn said(part: PartView<'_>, whole: &mut DefaultHasher, beginning: &mut String) {
    match part {
        PartView::Text(text) => {
            ("text", text).hash(whole);
            begin(beginning, text);
        }
        PartView::Reasoning(reasoning) => ("reasoning", reasoning.text, reasoning.opaque).hash(whole),
        PartView::ToolCall(call) => {
            ("call", call.id, call.name, call.arguments).hash(whole);
            begin(beginning, call.name);
        }
        PartView::ToolResult(result) => ("result", result.call_id, result.is_error).hash(whole),
        // Other parts: all their fields.
        other => format!("{other:?}").hash(whole),
    }
}

fn begin(beginning: &mut String, text: &str) {
    if beginning.chars().count() < FRAME_CHARS.max(SHOWN_CHARS) {
        let space = if beginning.is_empty() { "" } else { " " };
        beginning.push_str(space);
        beginning.extend(text.chars().take(FRAME_CHARS.max(SHOWN_CHARS)));
    }
}

/// Compares two transcripts in one pass. The messages of the second are searched in the first in its order, which a
/// compaction keeps.
fn compare(a: &[Side], b: &[Side]) -> Comparison {
    let wholes = places(a, 0..a.len(), |side| side.whole);
    let (mut rows, mut begun, mut new) = (Vec::with_capacity(a.len().max(b.len())), 0, Vec::new());
    for (at, side) in b.iter().enumerate() {
        let next = first_from(&wholes, side.whole, begun);
        let Some((next, same)) = next.and_then(|next| Some((next, a.get(next)?))) else {
            new.push(at);
            continue;
        };
        between(a, begun..next, b, &core::mem::take(&mut new), &mut rows);
        rows.push(Row { sign: '=', a: Some(same.place(next)), b: Some(side.place(at)) });
        begun = next + 1;
    }
    between(a, begun..a.len(), b, &new, &mut rows);
    let count = |sign| rows.iter().filter(|row| row.sign == sign).count();
    let sum = |sides: &[Side]| sides.iter().map(|side| side.tokens).sum();
    Comparison {
        same: count('='),
        changed: count('~'),
        only_a: count('<'),
        only_b: count('>'),
        tokens_a: sum(a),
        tokens_b: sum(b),
        stable_prefix_messages: rows.iter().take_while(|row| row.sign == '=').count(),
        rows,
    }
}

/// Compares the messages between two equal ones: a pair with equal frames is changed, any other message is in one
/// transcript only.
fn between(a: &[Side], old: Range<usize>, b: &[Side], new: &[usize], rows: &mut Vec<Row>) {
    let frames = if new.is_empty() { HashMap::new() } else { places(a, old.clone(), |side| side.frame) };
    let mut left = old.peekable();
    for at in new {
        let Some(side) = b.get(*at) else { continue };
        let changed = left.peek().and_then(|begun| first_from(&frames, side.frame, *begun));
        while let Some(gone) = left.next_if(|old| changed.is_some_and(|changed| *old < changed)) {
            rows.extend(a.get(gone).map(|side| Row { sign: '<', a: Some(side.place(gone)), b: None }));
        }
        let was = changed.and_then(|_| left.next()).and_then(|was| Some(a.get(was)?.place(was)));
        let sign = if was.is_some() { '~' } else { '>' };
        rows.push(Row { sign, a: was, b: Some(side.place(*at)) });
    }
    rows.extend(left.filter_map(|at| Some(Row { sign: '<', a: Some(a.get(at)?.place(at)), b: None })));
}

/// Positions of each hash in a range of a transcript, in order.
fn places(sides: &[Side], part: Range<usize>, hash: impl Fn(&Side) -> u64) -> HashMap<u64, Vec<usize>> {
    let mut places: HashMap<u64, Vec<usize>> = HashMap::new();
    for (at, side) in part.clone().zip(sides.get(part).unwrap_or_default()) {
        places.entry(hash(side)).or_default().push(at);
    }
    places
}

/// The first position of a hash from `begun` on.
fn first_from(places: &HashMap<u64, Vec<usize>>, hash: u64, begun: usize) -> Option<usize> {
    let own = places.get(&hash)?;
    own.get(own.partition_point(|place| *place < begun)).copied()
}

impl Comparison {
    fn to_text(&self) -> String {
        let mut out = String::new();
        for row in &self.rows {
            let [a, b] = [&row.a, &row.b].map(|place| place.as_ref().map_or_else(String::new, cell));
            let text = format!("{a:<WIDTH$} {} {b}", row.sign);
            let _ = writeln!(out, "{}", text.trim_end());
        }
        let _ = write!(
            out,
            "\n{} the same, {} changed, {} only in the first, {} only in the second; {} to {} (estimated); the first {} \
             as before",
            self.same,
            self.changed,
            self.only_a,
            self.only_b,
            grouped(self.tokens_a),
            counted(self.tokens_b, "token"),
            counted(self.stable_prefix_messages as u64, "message"),
        );
        out
    }
}

/// Width of a column: number, role, tokens, and the beginning of the text.
const WIDTH: usize = 5 + 1 + 9 + 1 + 7 + 2 + SHOWN_CHARS;

fn cell(place: &Place) -> String {
    // A run of base64 is replaced by its size, and control characters are made visible.
    let text: String = line(&without_base64(&place.beginning)).chars().take(SHOWN_CHARS).collect();
    format!("{:>5} {:<9} {:>7}  {text}", place.at, place.role, grouped(place.tokens))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn side(whole: u64, frame: u64) -> Side {
        Side { role: Role::User, tokens: 1, whole, frame, beginning: String::new() }
    }

    fn rows(rows: &[Row]) -> Vec<(char, Option<usize>, Option<usize>)> {
        let at = |place: &Option<Place>| place.as_ref().map(|place| place.at);
        rows.iter().map(|row| (row.sign, at(&row.a), at(&row.b))).collect()
    }

    /// Naive twin of `compare`: it searches all remaining messages each time.
    fn naive(a: &[Side], b: &[Side]) -> Vec<(char, Option<usize>, Option<usize>)> {
        let (mut rows, mut begun, mut at) = (Vec::new(), 0, 0);
        while at < b.len() {
            // The messages before the next equal one.
            let same = |side: &Side| (begun..a.len()).find(|old| a[*old].whole == side.whole);
            let next = (at..b.len()).find(|new| same(&b[*new]).is_some());
            let (end, until) = next.map_or((b.len(), a.len()), |new| (new, same(&b[new]).unwrap()));
            for (new, told) in b.iter().enumerate().take(end).skip(at) {
                let changed = (begun..until).find(|old| a[*old].frame == told.frame);
                rows.extend((begun..changed.unwrap_or(begun)).map(|old| ('<', Some(old), None)));
                rows.push((if changed.is_some() { '~' } else { '>' }, changed, Some(new)));
                begun = changed.map_or(begun, |changed| changed + 1);
            }
            rows.extend((begun..until).map(|old| ('<', Some(old), None)));
            rows.extend(next.map(|new| ('=', Some(until), Some(new))));
            (begun, at) = (until + 1, end + 1);
        }
        rows.extend((begun..a.len()).map(|old| ('<', Some(old), None)));
        rows
    }

    fn sides() -> impl Strategy<Value = Vec<Side>> {
        prop::collection::vec((0..12_u64, 0..4_u64).prop_map(|(whole, frame)| side(whole, frame)), 0..12)
    }

    proptest! {
        #[test]
        fn what_is_found_by_hash_is_what_a_search_finds((a, b) in (sides(), sides())) {
            prop_assert_eq!(rows(&compare(&a, &b).rows), naive(&a, &b));
        }
    }

    /// A comparison of each message with all others takes minutes here.
    #[test]
    fn transcripts_that_have_nothing_in_common_are_compared_at_once() {
        let a: Vec<_> = (0..400_000).map(|at| side(at, at)).collect();
        let b: Vec<_> = (400_000..800_000).map(|at| side(at, at)).collect();
        let found = compare(&a, &b);
        assert_eq!((found.only_a, found.only_b, found.same + found.changed), (400_000, 400_000, 0));
    }
}
