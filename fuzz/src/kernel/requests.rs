//! Messages out: into buffers of any size, to sinks, and one by one.

use core::ffi::{c_char, c_void};
use core::slice;

use libfuzzer_sys::arbitrary::{Result, Unstructured};

use super::border::*;
use super::machine::Machine;
use super::words;

/// A byte that no request has, because it is no UTF-8.
const UNTOUCHED: u8 = 0xFF;

/// The request of a history.
pub(super) fn written(history: *const History) -> Vec<u8> {
    let mut length = Place::new();
    // SAFETY: no buffer, and a place for the output.
    let error = unsafe {
        let length = length.pointer(Wrong::No, history.cast_mut());
        epitome_kernel_write_openai_chat(history, core::ptr::null_mut(), 0, length)
    };
    // It measures, and no request has no bytes.
    assert_eq!(error, error::BUFFER);
    let mut request = vec![0; length.value()];
    let mut length = Place::new();
    // SAFETY: a buffer of this length, and a place for the output.
    let error = unsafe {
        let length = length.pointer(Wrong::No, history.cast_mut());
        epitome_kernel_write_openai_chat(history, request.as_mut_ptr().cast(), request.len(), length)
    };
    assert_eq!((error, length.value()), (error::OK, request.len()));
    request
}

/// A buffer of any size: the request, or the beginning of it and its length; nothing is written behind its end.
pub(super) fn write(machine: &mut Machine, program: &mut Unstructured<'_>) -> Result<()> {
    let request = written(machine.history);
    let capacity = match program.int_in_range(0..=3)? {
        0 => request.len(),
        1 => request.len() + 1,
        _ => program.int_in_range(0..=request.len())?,
    };
    let wrong = words::wrong(program)?;
    let (is_null, is_inside) = (capacity > 0 && program.ratio(1, 32)?, capacity > 0 && program.ratio(1, 32)?);
    let mut buffer = vec![UNTOUCHED; request.len() + 8];
    let mut length = Place::new();
    let mut expected: Vec<_> = wrong.error().into_iter().collect();
    expected.extend((is_null && !is_inside).then_some(error::NULL));
    expected.extend(is_inside.then_some(error::OVERLAP));
    if expected.is_empty() {
        expected.push(if capacity < request.len() { error::BUFFER } else { error::OK });
    }
    let is_refused = ![error::BUFFER, error::OK].contains(&expected[0]);
    machine.call(&expected, &[], |history| {
        let to = match (is_inside, is_null) {
            (true, _) => history.wrapping_byte_add(16).cast(),
            (false, true) => core::ptr::null_mut(),
            (false, false) => buffer.as_mut_ptr().cast(),
        };
        // SAFETY: a buffer of this length, or one of the errors above.
        unsafe { epitome_kernel_write_openai_chat(history, to, capacity, length.pointer(wrong, history)) }
    });
    if is_refused {
        assert!(length.is_untouched() && buffer.iter().all(|byte| *byte == UNTOUCHED));
        return Ok(());
    }
    assert_eq!(length.value(), request.len());
    let filled = capacity.min(request.len());
    assert_eq!(buffer[..filled], request[..filled]);
    assert!(buffer[filled..].iter().all(|byte| *byte == UNTOUCHED));
    Ok(())
}

/// A sink that ends after so many pieces, and asks in between for pointers that it must not have.
struct Greedy {
    history: *mut History,
    pieces: usize,
    taken: Vec<u8>,
}

unsafe extern "C" fn take(context: *mut c_void, bytes: *const c_char, length: usize) -> i32 {
    // SAFETY: `send` has given it, and the library as many bytes as it says.
    let (greedy, bytes) =
        unsafe { (&mut *context.cast::<Greedy>(), slice::from_raw_parts(bytes.cast::<u8>(), length)) };
    // SAFETY: a history.
    assert_eq!(unsafe { epitome_kernel_clear(greedy.history) }, error::BUSY);
    // SAFETY: the same.
    assert_eq!(unsafe { epitome_kernel_begin(greedy.history, 4) }, error::BUSY);
    if greedy.pieces == 0 {
        return -1;
    }
    greedy.pieces -= 1;
    greedy.taken.extend(bytes);
    0
}

pub(super) fn send(machine: &mut Machine, program: &mut Unstructured<'_>) -> Result<()> {
    let request = written(machine.history);
    let pieces = if program.ratio(1, 2)? { usize::MAX } else { usize::from(program.arbitrary::<u8>()?) };
    let mut greedy = Greedy { history: machine.history, pieces, taken: Vec::new() };
    let error = machine.call(&[], &[error::SINK], |history| {
        // SAFETY: a history, a sink, and its state.
        unsafe { epitome_kernel_send_openai_chat(history, Some(take), (&raw mut greedy).cast()) }
    });
    assert!(request.starts_with(&greedy.taken));
    assert_eq!(
        error == error::OK,
        greedy.taken.len() == request.len() && greedy.pieces > 0 || error == error::OK
    );
    assert_eq!(error == error::OK, request == greedy.taken && error != error::SINK);
    machine.call(&[error::NULL], &[], |history| {
        // SAFETY: no sink.
        unsafe { epitome_kernel_send_openai_chat(history, None, core::ptr::null_mut()) }
    });
    Ok(())
}

/// A message or part at any place, also where there is none.
pub(super) fn read(machine: &mut Machine, program: &mut Unstructured<'_>) -> Result<()> {
    let (wrong, place) = (words::wrong(program)?, words::size(program)? as usize);
    let span = Span { first: words::size(program)?, last: words::size(program)? };
    let within = |message: &u64| (span.first..=span.last).contains(message);
    let count =
        if span.first > span.last { 0 } else { machine.messages.keys().filter(|seq| within(seq)).count() };
    let mut expected: Vec<_> = wrong.error().into_iter().collect();
    if expected.is_empty() {
        expected.push(if place < count { error::OK } else { error::END });
    }
    let mut message = Place::new();
    let error = machine.call(&expected, &[], |history| {
        // SAFETY: a place for the output, or one of the errors above.
        unsafe { epitome_kernel_read_message_in(history, &span, place, message.pointer(wrong, history)) }
    });
    if error == error::OK {
        let Message { seq, .. } = message.value();
        assert!(within(&seq));
    } else {
        assert!(message.is_untouched());
    }
    Ok(())
}
