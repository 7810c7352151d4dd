//! Appends of whole messages.

use libfuzzer_sys::arbitrary::{Result, Unstructured};

use super::border::*;
use super::machine::{ASSISTANT, Machine, Shown, TOOL, USER};
use super::words;

/// `EPITOME_KERNEL_RETENTION_PINNED`, and the outcomes of an append.
const PINNED: i32 = 1;
const STORED: i32 = 1;
const LATE: i32 = 2;
const ORPHAN: i32 = 3;
const HIDDEN: i32 = 4;
/// Text in the place of the part that was cut.
const CUT: &str = "\n[... cut ...]\n";

/// A message in the form of a C program.
struct Owned {
    role: i32,
    retention: i32,
    text: Vec<u8>,
    name: Option<Vec<u8>>,
    calls: Vec<[Vec<u8>; 3]>,
    call_id: Option<Vec<u8>>,
    is_error: u32,
}

impl Owned {
    fn new(program: &mut Unstructured<'_>) -> Result<Self> {
        let role = match program.int_in_range(0..=31)? {
            31 => program.arbitrary()?,
            role => [3, 3, 4, 4, 5, 5, 1, 2][role % 8],
        };
        let retention = match program.int_in_range(0..=31)? {
            31 => program.arbitrary()?,
            retention => [0, 0, 0, 0, 0, 0, 1, 2][retention as usize % 8],
        };
        let may_call = role == ASSISTANT || program.ratio(1, 32)?;
        let calls =
            if may_call { program.int_in_range(0..=9)? % 4 * program.int_in_range(1..=3)? } else { 0 };
        let calls = (0..calls).map(|_| Ok([words::id(program)?, b"find".into(), words::text(program)?]));
        let calls = calls.collect::<Result<_>>()?;
        let has_id = (role == TOOL) != program.ratio(1, 32)?;
        Ok(Self {
            role,
            retention,
            text: words::text(program)?,
            name: if program.ratio(1, 8)? { Some(words::text(program)?) } else { None },
            calls,
            call_id: if has_id { Some(words::id(program)?) } else { None },
            is_error: program.int_in_range(0..=2)?,
        })
    }

    /// A valid text of this role.
    fn said(role: i32, text: Vec<u8>) -> Self {
        Self { role, retention: 0, text, name: None, calls: Vec::new(), call_id: None, is_error: 0 }
    }

    /// All errors in the header for this message, except those for missing room.
    fn errors(&self) -> Vec<i32> {
        let mut errors = Vec::new();
        errors.extend(
            (!(1..=5).contains(&self.role) || !(0..=2).contains(&self.retention)).then_some(error::VALUE),
        );
        let contradicts = !self.calls.is_empty() && self.role != ASSISTANT;
        errors.extend((contradicts || self.call_id.is_some() != (self.role == TOOL)).then_some(error::ENTRY));
        let texts = [Some(&self.text), self.name.as_ref(), self.call_id.as_ref()].into_iter().flatten();
        let is_text = |text: &Vec<u8>| core::str::from_utf8(text).is_ok();
        let all = texts.chain(self.calls.iter().flatten()).all(is_text);
        errors.extend((!all).then_some(error::UTF8));
        let too_many =
            self.calls.len() > CALLS_MAX || self.calls.iter().any(|call| call[0].len() > CALL_ID_MAX);
        errors.extend(too_many.then_some(error::FULL));
        errors
    }
}

pub(super) fn append(machine: &mut Machine, program: &mut Unstructured<'_>) -> Result<()> {
    let message = Owned::new(program)?;
    let wrong = words::wrong(program)?;
    let bytes_max = if program.ratio(1, 4)? { Some(words::size(program)? as usize) } else { None };
    let is_null = program.ratio(1, 64)?;
    put(machine, &message, wrong, bytes_max, is_null);
    Ok(())
}

/// Appends whole turns of an agent, each with a request, a call, its result and an answer, so that a few bytes fill a
/// history.
pub(super) fn turns(machine: &mut Machine, program: &mut Unstructured<'_>) -> Result<()> {
    for _ in 0..program.int_in_range(1..=4)? {
        let (id, long) = (words::IDS[program.choose_index(2)?], program.int_in_range(1..=8)?);
        let said = |role, text: String| Owned::said(role, text.into_bytes());
        let calls = vec![[id.into(), b"find".into(), b"{}".into()]];
        let result = "a longer line, 4711\n".repeat(long);
        let turn = [
            said(USER, "Where is it? ".repeat(long % 3 + 1)),
            Owned { calls, ..said(ASSISTANT, String::new()) },
            Owned { call_id: Some(id.into()), ..said(TOOL, result) },
            said(ASSISTANT, "It is there. ".repeat(long % 5 + 1)),
        ];
        turn.iter().for_each(|message| put(machine, message, Wrong::No, None, false));
    }
    Ok(())
}

/// Appends the message, with an output argument that may be wrong, in at most `bytes_max` bytes, or from a null
/// pointer.
fn put(machine: &mut Machine, message: &Owned, wrong: Wrong, bytes_max: Option<usize>, is_null: bool) {
    let mut expected = message.errors();
    // The output argument may be null.
    expected.extend(wrong.error().filter(|_| wrong != Wrong::Null));
    expected.extend(is_null.then_some(error::NULL));
    expected.extend(machine.stream.is_some().then_some(error::STREAMING));
    let calls: Vec<_> = message
        .calls
        .iter()
        .map(|[id, name, arguments]| ToolCall {
            id: Text::of(id),
            name: Text::of(name),
            arguments: Text::of(arguments),
        })
        .collect();
    let or_absent = |text: &Option<Vec<u8>>| text.as_deref().map_or(Text::ABSENT, Text::of);
    let entry = Entry {
        role: message.role,
        retention: message.retention,
        text: Text::of(&message.text),
        name: or_absent(&message.name),
        calls: if calls.is_empty() { core::ptr::null() } else { calls.as_ptr() },
        call_count: calls.len(),
        call_id: or_absent(&message.call_id),
        is_error: message.is_error,
    };
    let mut placed = Place::new();
    let before = machine.status();
    let error = machine.call(&expected, &[error::FULL], |history| {
        let entry = if is_null { core::ptr::null() } else { &raw const entry };
        let placed = placed.pointer(wrong, history);
        // SAFETY: an entry with texts of these lengths, or one of the errors above.
        match bytes_max {
            None => unsafe { epitome_kernel_append(history, entry, placed) },
            Some(most) => unsafe { epitome_kernel_append_clamped(history, entry, most, placed) },
        }
    });
    if error != error::OK {
        assert!(placed.is_untouched());
        return;
    }
    let outcome = (wrong == Wrong::No).then(|| placed.value());
    if let Some(most) = bytes_max {
        assert!(before.free_bytes as usize - machine.status().free_bytes as usize <= most);
    }
    note(machine, message, outcome, &before, bytes_max.is_some());
}

/// Checks the appended message, and adds it to the list.
fn note(machine: &mut Machine, message: &Owned, placed: Option<Placed>, before: &Status, may_cut: bool) {
    let (after, shown) = (machine.status(), machine.shown());
    let is_stored = after.messages == before.messages + 1;
    if let Some(placed) = placed {
        assert_eq!(is_stored, [STORED, LATE].contains(&placed.outcome), "{placed:?}");
        assert!(
            is_stored || (message.role == TOOL && [ORPHAN, HIDDEN].contains(&placed.outcome)),
            "{placed:?}"
        );
        // An orphan takes no number. A hidden result takes a number, and nothing else.
        assert_eq!(after.next_seq, before.next_seq + u64::from(placed.outcome != ORPHAN), "{placed:?}");
    }
    assert!(after.next_seq - before.next_seq <= 1);
    assert!(is_stored || after.free_bytes == before.free_bytes);
    machine.next_seq = after.next_seq;
    let new = shown.into_iter().find(|shown| !machine.messages.contains_key(&shown.seq));
    assert_eq!(new.is_some(), is_stored);
    if let Some(new) = new {
        assert_eq!(new.seq, before.next_seq);
        says(&new, message, may_cut);
        if message.retention == PINNED {
            machine.pinned.push(new.seq);
        }
        machine.messages.insert(new.seq, new);
    }
}

/// Checks that the history has the appended message.
fn says(shown: &Shown, message: &Owned, may_cut: bool) {
    let said = |bytes: &[u8]| Some(String::from_utf8(bytes.to_vec()).unwrap());
    assert_eq!((shown.role, shown.is_summary, shown.is_cleared), (message.role, false, false));
    assert_eq!(shown.name, message.name.as_deref().and_then(said));
    let mut parts = Vec::new();
    if message.role == TOOL {
        let is_error = u32::from(message.is_error != 0);
        parts.push((3, said(&message.text), message.call_id.as_deref().and_then(said), None, is_error));
    } else if !message.text.is_empty() {
        parts.push((1, said(&message.text), None, None, 0));
    }
    parts.extend(
        message.calls.iter().map(|[id, name, arguments]| (2, said(arguments), said(id), said(name), 0)),
    );
    let is_cut = may_cut && shown.parts != parts;
    if is_cut {
        let (cut, whole) = (shown.parts[0].1.clone().unwrap(), parts[0].1.clone().unwrap());
        let (head, tail) = cut.split_once(CUT).expect("a text that is cut says so");
        assert!(cut.len() < whole.len() && whole.starts_with(head) && whole.ends_with(tail));
        parts[0].1 = Some(cut);
    }
    assert_eq!(shown.parts, parts);
}
