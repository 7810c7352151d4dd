//! Insertion of a message that is larger than the free room.

use crate::index::Placed;
use crate::message::{MessageView, PartView};
use crate::table::Full;
use crate::{TokenCounter, Tokens};

use super::BoundedHistory;
use super::bytes::Writer;
use super::encode::{CLAMP_MARKER, Form, write_message};

impl<const MESSAGES: usize, const BYTES: usize, const PARTS: usize> BoundedHistory<MESSAGES, BYTES, PARTS> {
    /// Adds a message in at most `bytes_max` bytes, and at most the free bytes, and shortens its texts if necessary.
    ///
    /// A text that is too long keeps its head and its tail, with [`CLAMP_MARKER`] between them, cut between characters.
    /// Calls are never shortened, because half of their arguments would be another call.
    ///
    /// Choose `bytes_max` so that the message also fits the budget: as the last message of the conversation it will be
    /// protected.
    ///
    /// # Errors
    /// [`Full`] as for [`push`](Self::push); for lack of bytes only if there is no room for even [`CLAMP_MARKER`] and
    /// 32 bytes of each long text. The history is unchanged then.
    ///
    /// ```
    /// use epitome_core::message::{PartView, Parts, SimpleMessage};
    /// use epitome_core::{BoundedHistory, ClassEstimator, Full};
    ///
    /// let mut history = BoundedHistory::<8, 128>::new();
    /// let log = format!("boot ok\n{}\nfan failed", "tick\n".repeat(1_000));
    /// assert_eq!(history.push(&SimpleMessage::user(&log), &ClassEstimator::new()), Err(Full));
    /// history.push_clamped(&SimpleMessage::user(&log), 100, &ClassEstimator::new())?;
    /// history.messages().for_each(|message| message.for_each_part(&mut |part| {
    ///     let PartView::Text(text) = part else { unreachable!("a text is a text") };
    ///     assert!(text.starts_with("boot ok") && text.ends_with("fan failed") && text.len() < 100);
    /// }));
    /// # Ok::<(), epitome_core::Full>(())
    /// ```
    pub fn push_clamped<M: MessageView + ?Sized>(
        &mut self,
        message: &M,
        bytes_max: usize,
        counter: &(impl TokenCounter + ?Sized),
    ) -> Result<Placed, Full> {
        if self.index.is_orphan(message) {
            return Ok(self.orphan());
        }
        let (room, form) = (self.free_room()?, Self::form(Tokens::ZERO));
        let text_max = text_max(message, form, room.len().min(bytes_max))?;
        let mut to = Writer::new(room);
        write_message(message, Form { text_max, ..form }, &mut to);
        let bytes = to.finish()?;
        self.keep_written(bytes, counter)
    }
}

/// Maximum length of the texts of a message whose record fits `room`; `usize::MAX` if the record fits unchanged.
fn text_max<M: MessageView + ?Sized>(message: &M, form: Form, room: usize) -> Result<usize, Full> {
    let fits = |text_max: usize| {
        let mut to = Writer::new(&mut []);
        write_message(message, Form { text_max, ..form }, &mut to);
        to.written() <= room
    };
    if fits(usize::MAX) {
        return Ok(usize::MAX);
    }
    // Bisect for the largest length of texts at which the record fits.
    let (mut low, mut high) = (TEXT_MIN, longest_text(message).min(room));
    if !fits(low) {
        return Err(Full);
    }
    while low.saturating_add(1) < high {
        let middle = low.midpoint(high);
        if fits(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

fn longest_text<M: MessageView + ?Sized>(message: &M) -> usize {
    let mut longest = 0;
    message.for_each_part(&mut |part| match part {
        PartView::Text(text) => longest = longest.max(text.len()),
        PartView::ToolResult(result) => result.content.for_each_part(&mut |part| {
            if let PartView::Text(text) = part {
                longest = longest.max(text.len());
            }
        }),
        _ => {}
    });
    longest
}

/// Minimum length of a clamped text: the marker, and half of the rest on each side. A shorter text has no useful
/// content.
const TEXT_MIN: usize = CLAMP_MARKER.len().saturating_add(32);
