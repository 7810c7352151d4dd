//! Pins of a program, in addition to messages that are stored as pinned.

use core::fmt;
use std::sync::Arc;

use epitome_core::Seq;
use epitome_core::attribution::{AttributionView, Retention, SeqRange};
use epitome_core::message::{MessageView, PartView, Parts, Role};

use epitome_message::{Message, Str};

/// Messages that no compaction hides, with the calls and results of their groups. They are selected by number, by
/// source, or by a predicate. Pins are not stored: a program sets them for each history or compaction.
///
/// A message that is already hidden stays hidden, and its summary may be replaced: undo the compaction first. If the
/// pinned messages alone exceed the limit, a compaction fails with `Infeasible`.
///
/// ```
/// use epitome_core::Seq;
/// use epitome_history::Pins;
/// use epitome_message::Message;
///
/// let pins = Pins::default()
///     .with_message(Seq(4))
///     .with_source("handbook")
///     .with_where(|message: &Message| message.parts().len() > 3);
/// assert!(pins.holds(Some(Seq(4)), &Message::user("Keep this.")));
/// assert!(!pins.holds(Some(Seq(5)), &Message::user("And this need not be kept.")));
/// ```
#[derive(Clone, Default)]
pub struct Pins(Vec<Pin>);

#[derive(Clone)]
enum Pin {
    Messages(SeqRange),
    Source(Str),
    Where(Arc<dyn Fn(&Message) -> bool + Send + Sync>),
}

impl Pins {
    /// Pins the message with this number in the session's log.
    #[must_use]
    pub fn with_message(self, seq: Seq) -> Self {
        self.with_messages(SeqRange { first: seq, last: seq })
    }

    /// Pins the messages with these numbers.
    #[must_use]
    pub fn with_messages(self, range: SeqRange) -> Self {
        self.with(Pin::Messages(range))
    }

    /// Pins every message that this component added. The caller's own messages have the empty source.
    #[must_use]
    pub fn with_source(self, source_id: impl Into<Str>) -> Self {
        self.with(Pin::Source(source_id.into()))
    }

    /// Pins the messages for which `holds` returns `true`. It is called often, and must always return the same value
    /// for a message.
    #[must_use]
    pub fn with_where(self, holds: impl Fn(&Message) -> bool + Send + Sync + 'static) -> Self {
        self.with(Pin::Where(Arc::new(holds)))
    }

    fn with(mut self, pin: Pin) -> Self {
        self.0.push(pin);
        self
    }

    /// Whether there are no pins.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a message is pinned. A message that is not stored yet has no number.
    #[must_use]
    pub fn holds(&self, seq: Option<Seq>, message: &Message) -> bool {
        self.0.iter().any(|pin| match pin {
            Pin::Messages(range) => seq.is_some_and(|seq| range.contains(seq)),
            Pin::Source(source_id) => message.attribution().source_id == *source_id,
            Pin::Where(holds) => holds(message),
        })
    }

    /// A message of the log with its pin, for an index.
    pub(super) fn seen<'m>(&self, seq: Seq, message: &'m Message) -> Pinned<'m, Message> {
        Pinned::new(message, self.holds(Some(seq), message))
    }
}

impl fmt::Debug for Pins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = f.debug_list();
        for pin in &self.0 {
            match pin {
                Pin::Messages(range) => list.entry(range),
                Pin::Source(source_id) => list.entry(source_id),
                Pin::Where(_) => list.entry(&"where"),
            };
        }
        list.finish()
    }
}

/// A message that counts as pinned if it is stored as pinned, or `pinned` is set.
#[derive(Debug, Clone, Copy)]
pub struct Pinned<'a, M> {
    message: &'a M,
    pinned: bool,
}

impl<'a, M> Pinned<'a, M> {
    /// Wraps `message`. It counts as pinned if it is stored as pinned, or `pinned` is set.
    pub const fn new(message: &'a M, pinned: bool) -> Self {
        Self { message, pinned }
    }
}

impl<M: MessageView> Parts for Pinned<'_, M> {
    fn for_each_part(&self, visit: &mut dyn FnMut(PartView<'_>)) {
        self.message.for_each_part(visit);
    }
}

impl<M: MessageView> MessageView for Pinned<'_, M> {
    fn role(&self) -> Role {
        self.message.role()
    }

    fn attribution(&self) -> AttributionView<'_> {
        let mut attribution = self.message.attribution();
        if self.pinned {
            attribution.retention = Retention::Pinned;
        }
        attribution
    }

    fn response_id(&self) -> Option<&str> {
        self.message.response_id()
    }

    fn name(&self) -> Option<&str> {
        self.message.name()
    }
}
