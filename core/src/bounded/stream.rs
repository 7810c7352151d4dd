//! Messages whose text arrives piece by piece.

use crate::attribution::AttributionView;
use crate::index::Placed;
use crate::message::{MessageView, PartView, Parts, Role};
use crate::table::Full;
use crate::{TokenCounter, Tokens};

use super::bytes::{Writer, fill, move_down};
use super::encode::{Form, tag, write_message};
use super::results::note_size;
use super::{ArenaMessage, BoundedHistory};

impl<const MESSAGES: usize, const BYTES: usize, const PARTS: usize> BoundedHistory<MESSAGES, BYTES, PARTS> {
    /// Begins a message of the caller in this role, usually the answer of the model, whose text arrives piece by piece.
    ///
    /// # Errors
    /// [`Full`] if there is no room for another message, and for [`Role::Tool`]: the message of a tool is a result, which
    /// [`push`](Self::push) adds.
    ///
    /// ```
    /// use epitome_core::message::Role;
    /// use epitome_core::{BoundedHistory, ClassEstimator};
    ///
    /// let mut history = BoundedHistory::<8, 64>::new();
    /// let mut answer = history.begin(Role::Assistant)?;
    /// for piece in ["21 ", "degrees."] {
    ///     answer.extend(piece)?;
    /// }
    /// answer.finish(&ClassEstimator::new())?;
    /// assert_eq!(history.len(), 1);
    ///
    /// // An answer that breaks off leaves nothing behind.
    /// history.begin(Role::Assistant)?.extend("Or was it")?;
    /// assert_eq!(history.len(), 1);
    /// assert!(history.begin(Role::Tool).is_err());
    /// # Ok::<(), epitome_core::Full>(())
    /// ```
    pub fn begin(&mut self, role: Role) -> Result<Stream<'_, MESSAGES, BYTES, PARTS>, Full> {
        // The bytes before a text in a record depend on the length of the text: at the end, the text is moved to its
        // place.
        if matches!(role, Role::Tool) || self.free_room()?.len() < TEXT_AT {
            return Err(Full);
        }
        Ok(Stream { history: self, role, len: 0 })
    }

    #[cfg(feature = "suspend")]
    /// Resumes the stream that [`Stream::suspend`] has suspended.
    ///
    /// `None` if there is no suspended stream. Its text is discarded as soon as another message is added or begun, or
    /// the history is compacted, summarized, restored or cleared. A failed attempt can discard it too.
    pub const fn resume(&mut self) -> Option<Stream<'_, MESSAGES, BYTES, PARTS>> {
        let Suspended { there, role, len } = self.suspended;
        self.suspended = Suspended::NONE;
        if there { Some(Stream { history: self, role, len }) } else { None }
    }

    #[cfg(feature = "suspend")]
    /// Whether there is a stream to [`resume`](Self::resume).
    ///
    /// ```
    /// # use epitome_core::BoundedHistory;
    /// # use epitome_core::message::Role;
    /// let mut history = BoundedHistory::<8, 64>::new();
    /// history.begin(Role::Assistant)?.suspend();
    /// assert!(history.is_suspended());
    /// history.clear();
    /// assert!(!history.is_suspended());
    /// # Ok::<(), epitome_core::Full>(())
    /// ```
    #[must_use]
    pub const fn is_suspended(&self) -> bool {
        self.suspended.there
    }
}

/// A message whose text is still arriving, begun by [`BoundedHistory::begin`].
///
/// The history is unchanged until [`Stream::finish`]. Dropping the stream discards the text.
pub struct Stream<'h, const MESSAGES: usize, const BYTES: usize, const PARTS: usize = 0> {
    history: &'h mut BoundedHistory<MESSAGES, BYTES, PARTS>,
    role: Role,
    /// Number of bytes of text that have arrived.
    len: usize,
}

impl<const MESSAGES: usize, const BYTES: usize, const PARTS: usize> Stream<'_, MESSAGES, BYTES, PARTS> {
    /// Adds a piece of text.
    ///
    /// ```
    /// use epitome_core::message::Role;
    /// use epitome_core::{BoundedHistory, Full};
    ///
    /// let mut history = BoundedHistory::<2, 16>::new();
    /// let mut answer = history.begin(Role::Assistant)?;
    /// answer.extend("It is")?;
    /// assert_eq!(answer.extend("warm, and it will get warmer."), Err(Full));
    /// assert_eq!(answer.len(), 5);
    /// # Ok::<(), Full>(())
    /// ```
    ///
    /// # Errors
    /// [`Full`] if there is no room for the piece. The text before it stays, and the message can be finished.
    pub fn extend(&mut self, piece: &str) -> Result<(), Full> {
        let end = self.len.saturating_add(piece.len());
        let (from, to) = (TEXT_AT.saturating_add(self.len), TEXT_AT.saturating_add(end));
        fill(self.room()?.get_mut(from..to).ok_or(Full)?, piece.as_bytes());
        self.len = end;
        Ok(())
    }

    /// Adds the message to the history.
    ///
    /// # Errors
    /// [`Full`] as for [`BoundedHistory::push`]. The text is discarded then.
    pub fn finish(mut self, counter: &(impl TokenCounter + ?Sized)) -> Result<Placed, Full> {
        let bytes = self.close()?;
        let Self { history, .. } = self;
        history.keep_written(bytes, counter)
    }

    #[cfg(feature = "suspend")]
    /// Leaves the text in the history, where [`BoundedHistory::resume`] finds it.
    ///
    /// Use it in a caller that cannot hold a stream from one piece to the next, such as a program in C. Nothing else
    /// may be added before the stream is resumed.
    ///
    /// ```
    /// use epitome_core::message::Role;
    /// use epitome_core::{BoundedHistory, ClassEstimator};
    ///
    /// let mut history = BoundedHistory::<8, 64>::new();
    /// history.begin(Role::Assistant)?.suspend();
    /// for piece in ["21 ", "degrees."] {
    ///     let mut answer = history.resume().expect("nothing else was added");
    ///     answer.extend(piece)?;
    ///     answer.suspend();
    /// }
    /// history.resume().expect("nothing else was added").finish(&ClassEstimator::new())?;
    /// assert!(history.len() == 1 && history.resume().is_none());
    /// # Ok::<(), epitome_core::Full>(())
    /// ```
    pub const fn suspend(self) {
        self.history.suspended = Suspended { there: true, role: self.role, len: self.len };
    }

    /// Number of bytes of text that have arrived.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether no text has arrived.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Turns the text into a record and returns its length.
    fn close(&mut self) -> Result<usize, Full> {
        let (role, len) = (self.role, self.len);
        let room = self.room()?;
        let mut to = Writer::new(room);
        write_message(&Bare(role), Form::PLAIN, &mut to);
        if len > 0 {
            to.byte(tag::TEXT);
            to.length(len);
        }
        let at = to.finish()?;
        let end = TEXT_AT.saturating_add(len);
        move_down(room, TEXT_AT..end, at);
        Ok(at.saturating_add(len))
    }

    fn room(&mut self) -> Result<&mut [u8], Full> {
        self.history.free_room()
    }
}

#[cfg(feature = "suspend")]
/// The state of a suspended stream. `NONE` is all zero bytes, like all of an empty history.
#[derive(Debug, Clone, Copy)]
pub(super) struct Suspended {
    there: bool,
    role: Role,
    len: usize,
}

#[cfg(feature = "suspend")]
impl Suspended {
    pub(super) const NONE: Self = Self { there: false, role: Role::System, len: 0 };
}

impl<const MESSAGES: usize, const BYTES: usize, const PARTS: usize> core::fmt::Debug
    for Stream<'_, MESSAGES, BYTES, PARTS>
{
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Stream").field("role", &self.role).field("len", &self.len).finish_non_exhaustive()
    }
}

impl<const MESSAGES: usize, const BYTES: usize, const PARTS: usize> BoundedHistory<MESSAGES, BYTES, PARTS> {
    /// Adds the message whose record of `bytes` bytes lies in the free room.
    pub(super) fn keep_written(
        &mut self,
        bytes: usize,
        counter: &(impl TokenCounter + ?Sized),
    ) -> Result<Placed, Full> {
        let (seq, end) = (self.next_seq()?, self.used.saturating_add(bytes));
        let record = self.arena.get(self.used..end).ok_or(Full)?;
        let message = ArenaMessage::read(record, self.index.head(), Tokens::ZERO).ok_or(Full)?;
        if self.index.is_orphan(&message) {
            return Ok(self.orphan());
        }
        let (tokens, result) = Self::count(&message, counter);
        let placed = Self::place(&mut self.index, &message, tokens, result)?;
        if PARTS > 0 {
            note_size(self.arena.get_mut(self.used..end).unwrap_or_default(), result);
        }
        self.keep(placed, seq, tokens, bytes);
        Ok(placed)
    }
}

/// A message of the caller without content.
struct Bare(Role);

impl Parts for Bare {
    fn for_each_part(&self, _visit: &mut dyn FnMut(PartView<'_>)) {}
}

impl MessageView for Bare {
    fn role(&self) -> Role {
        self.0
    }

    fn attribution(&self) -> AttributionView<'_> {
        AttributionView::caller(self.0.authority())
    }
}

/// Offset of the text of a stream before it is finished: behind two bytes of head, a tag and at most five bytes of
/// length.
const TEXT_AT: usize = 8;
