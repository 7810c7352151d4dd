//! Pins of the command line: `--pin 12`, `--pin 3-5`, `--pin id:call_7`, `--pin source:handbook`.

use core::str::FromStr;

use epitome::core::Seq;
use epitome::core::attribution::SeqRange;
use epitome::core::message::{MessageView, PartView};
use epitome::history::{self, Live, Pinned};
use epitome::message::Message;

use crate::failure::{Failure, Result};

/// The messages that one `--pin` protects.
#[derive(Debug, Clone)]
pub(crate) struct Pin {
    text: String,
    which: Which,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Which {
    /// Messages at these positions, counted from 0.
    At(u64, u64),
    /// Messages of the response with this id, or with a call, a result or an approval of this id.
    Id(String),
    /// Messages that this component added.
    Source(String),
}

impl FromStr for Pin {
    type Err = String;

    fn from_str(text: &str) -> core::result::Result<Self, String> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let at = [first, last].map(|number| number.parse::<u64>().ok());
        let which = match (text.split_once(':'), at) {
            (Some(("id", id)), _) if !id.is_empty() => Which::Id(id.to_owned()),
            (Some(("source", source)), _) if !source.is_empty() => Which::Source(source.to_owned()),
            (None, [Some(first), Some(last)]) if first <= last => Which::At(first, last),
            _ => return Err("expected a message's number (12), a range (3-5), id:ID or source:NAME".into()),
        };
        Ok(Self { text: text.to_owned(), which })
    }
}

impl Pin {
    /// The same pin for a stored session, by sequence numbers.
    fn pinned_in(&self, pins: history::Pins) -> history::Pins {
        match &self.which {
            Which::At(first, last) => pins.with_messages(SeqRange { first: Seq(*first), last: Seq(*last) }),
            Which::Id(id) => {
                let id = id.clone();
                pins.with_where(move |message: &Message| has_id(message, &id))
            }
            Which::Source(source) => pins.with_source(source.as_str()),
        }
    }

    fn holds(&self, at: usize, message: &impl MessageView) -> bool {
        match &self.which {
            Which::At(first, last) => (*first..=*last).contains(&(at as u64)),
            Which::Id(id) => has_id(message, id),
            Which::Source(source) => message.attribution().source_id == source,
        }
    }
}

/// The pins for a stored session with the visible messages `live`.
///
/// # Errors
///
/// A pin matches none of these messages.
pub(crate) fn in_session(pins: &[Pin], live: &[Live]) -> Result<history::Pins> {
    let mut all = history::Pins::default();
    for pin in pins {
        let own = pin.pinned_in(history::Pins::default());
        if !live.iter().any(|live| own.holds(Some(live.key), &live.entry.message)) {
            return Err(Failure::input(format!(
                "--pin {}: no message that is shown matches it; `epitome session log` lists the numbers. A hidden message cannot be pinned: it stays hidden",
                pin.text
            )));
        }
        all = pin.pinned_in(all);
    }
    Ok(all)
}

/// The messages that a pin has matched so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Met {
    Nothing,
    /// This message answers no call, so that no request can hold it. For an id or a source, all other matches are
    /// orphans too.
    Orphan(usize),
    Something,
}

/// Pins of one conversation.
#[derive(Debug)]
pub(crate) struct Pins<'a> {
    pins: &'a [Pin],
    /// The matches of each pin.
    met: Vec<Met>,
    /// Number of messages so far.
    at: usize,
}

impl<'a> Pins<'a> {
    pub(crate) fn new(pins: &'a [Pin]) -> Self {
        Self { pins, met: vec![Met::Nothing; pins.len()], at: 0 }
    }

    /// The next message, pinned if it has a pin or a pin matches it.
    pub(crate) fn next<'m, M: MessageView>(&self, message: &'m M) -> Pinned<'m, M> {
        Pinned::new(message, self.pins.iter().any(|pin| pin.holds(self.at, message)))
    }

    /// Records whether that message is an orphan, and moves to the next one.
    pub(crate) fn placed(&mut self, message: &impl MessageView, is_orphan: bool) {
        for (pin, met) in self.pins.iter().zip(&mut self.met) {
            *met = match (pin.holds(self.at, message), is_orphan, *met) {
                (false, ..) => *met,
                // An id or a source may match other messages; a position names this one.
                (true, true, Met::Something) if !matches!(pin.which, Which::At(..)) => Met::Something,
                (true, true, Met::Orphan(at)) => Met::Orphan(at),
                (true, true, _) => Met::Orphan(self.at),
                (true, false, Met::Orphan(at)) if matches!(pin.which, Which::At(..)) => Met::Orphan(at),
                (true, false, _) => Met::Something,
            };
        }
        self.at += 1;
    }

    /// Fails if a pin has matched no message, or an orphan that it names.
    pub(crate) fn check(&self) -> Result<()> {
        for (pin, met) in self.pins.iter().zip(&self.met) {
            let why = match met {
                Met::Something => continue,
                Met::Nothing => "there is no such message".to_owned(),
                Met::Orphan(at) => {
                    format!("message {at} answers no call, so no request can hold it; leave it out")
                }
            };
            return Err(Failure::input(format!("--pin {}: {why}", pin.text)));
        }
        Ok(())
    }
}

/// Whether a message belongs to the response with this id, or has a part with this id.
fn has_id(message: &impl MessageView, id: &str) -> bool {
    message.response_id() == Some(id) || names(message, id)
}

/// Whether a call, a result or an approval of the message has this id.
fn names(message: &impl MessageView, id: &str) -> bool {
    let mut named = false;
    message.for_each_part(&mut |part| {
        named |= match part {
            PartView::ToolCall(call) => call.id == id,
            PartView::ToolResult(result) => result.call_id == id,
            PartView::ApprovalRequest(request) => request.id == id,
            PartView::ApprovalResponse(response) => response.approval.id == id,
            PartView::Reasoning(reasoning) => reasoning.id == Some(id),
            _ => false,
        };
    });
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_an_id_or_a_source() {
        let which = |text: &str| text.parse::<Pin>().map(|pin| pin.which);
        assert_eq!(which("12"), Ok(Which::At(12, 12)));
        assert_eq!(which("3-5"), Ok(Which::At(3, 5)));
        assert_eq!(which("id:a:b-c"), Ok(Which::Id("a:b-c".into())));
        assert_eq!(which("source:handbook"), Ok(Which::Source("handbook".into())));
        for wrong in ["", "-1", "5-3", "1-", "id:", "source:", "call:x", "x", "18446744073709551616", "1-2-3"]
        {
            assert!(which(wrong).unwrap_err().contains("expected a message's number"), "{wrong}");
        }
    }
}
