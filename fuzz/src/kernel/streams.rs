//! Messages in, piece by piece.

use libfuzzer_sys::arbitrary::{Result, Unstructured};

use super::border::*;
use super::machine::{Machine, TOOL};
use super::words;

pub(super) fn begin(machine: &mut Machine, program: &mut Unstructured<'_>) -> Result<()> {
    let role = program.int_in_range(0..=6)?;
    let mut expected = Vec::new();
    expected.extend((!(1..=5).contains(&role)).then_some(error::VALUE));
    expected.extend((role == TOOL).then_some(error::ENTRY));
    expected.extend(machine.stream.is_some().then_some(error::STREAMING));
    // SAFETY: a history.
    let error =
        machine.call(&expected, &[error::FULL], |history| unsafe { epitome_kernel_begin(history, role) });
    if error == error::OK {
        machine.stream = Some((role, Vec::new()));
    }
    Ok(())
}

pub(super) fn extend(machine: &mut Machine, program: &mut Unstructured<'_>) -> Result<()> {
    let piece = words::text(program)?;
    let mut text = Text::of(&piece);
    let mut expected = Vec::new();
    match program.int_in_range(0..=31)? {
        0 => {
            text.length = usize::MAX - program.int_in_range(0..=64)?;
            expected.push(error::LENGTH);
        }
        1 if !piece.is_empty() => {
            text.bytes = core::ptr::null();
            expected.push(error::NULL);
        }
        2 => {
            text = Text {
                bytes: machine.history.wrapping_byte_add(program.int_in_range(0..=99)?).cast(),
                length: 1,
            };
            expected.push(error::OVERLAP);
        }
        _ => {}
    }
    expected.extend((expected.is_empty() && core::str::from_utf8(&piece).is_err()).then_some(error::UTF8));
    expected.extend(machine.stream.is_none().then_some(error::NOT_STREAMING));
    // SAFETY: a text of this length, or one of the errors above.
    let error =
        machine.call(&expected, &[error::FULL], |history| unsafe { epitome_kernel_extend(history, text) });
    if let (error::OK, Some((_, said))) = (error, &mut machine.stream) {
        said.extend(piece);
    }
    Ok(())
}

/// The message is added, or nothing of it is left.
pub(super) fn end(machine: &mut Machine, program: &mut Unstructured<'_>) -> Result<()> {
    let is_finished = program.ratio(3, 4)?;
    let wrong = if is_finished { words::wrong(program)? } else { Wrong::No };
    let mut expected: Vec<_> = wrong.error().into_iter().filter(|_| wrong != Wrong::Null).collect();
    expected.extend(machine.stream.is_none().then_some(error::NOT_STREAMING));
    let before = machine.snapshot();
    let mut placed = Place::new();
    // SAFETY: a history, and a place for the output, or one of the errors above.
    let error = unsafe {
        let pointer = placed.pointer(wrong, machine.history);
        if is_finished {
            epitome_kernel_finish(machine.history, pointer)
        } else {
            epitome_kernel_abandon(machine.history)
        }
    };
    if !expected.is_empty() {
        assert!(expected.contains(&error), "{error}, and not one of {expected:?}");
        assert!(placed.is_untouched() && machine.snapshot() == before);
        return Ok(());
    }
    let (role, said) = machine.stream.take().expect("a text is streamed");
    if error == error::FULL || !is_finished {
        assert!(error == error::OK || is_finished);
        assert!(placed.is_untouched() && machine.snapshot() == before);
        return Ok(());
    }
    assert_eq!(error, error::OK);
    let seq = machine.next_seq;
    machine.next_seq += 1;
    let new = machine.shown().into_iter().find(|shown| shown.seq == seq).expect("the message is there");
    assert_eq!((new.role, new.is_summary, new.is_cleared, &new.name), (role, false, false, &None));
    let texts: Vec<_> =
        new.parts.iter().map(|part| (part.0, part.1.as_deref().unwrap_or_default())).collect();
    let said = String::from_utf8(said).expect("each piece was a text");
    assert_eq!(texts, if said.is_empty() { vec![] } else { vec![(1, &*said)] });
    machine.messages.insert(seq, new);
    Ok(())
}
