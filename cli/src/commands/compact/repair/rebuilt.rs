//! The messages of a repaired conversation, put together step by step.

use epitome::core::message::CallKind;
use epitome::core::{BRIDGE, BRIDGE_USER, Profile, Repair, TokenCounter, count_message};
use epitome::std::message::{Message, Part, Str};
use epitome::std::wire::openai_chat;

use super::super::piece::OwnedPiece;
use crate::failure::{Failure, Result};
use crate::report::RepairCounts;
use crate::transcript::Transcript;

/// Reads the message that a piece is.
pub(super) type Read<'r> = dyn Fn(&OwnedPiece, &mut Transcript<'_>) -> Result<Message> + 'r;

/// What the steps of a repair have made so far. Each message is read once for all steps in a row that name it, so that the work
/// grows with what is read and written.
pub(super) struct Rebuilt<'a, 't> {
    kept: &'a [OwnedPiece],
    transcript: &'a mut Transcript<'t>,
    profile: Profile,
    counter: &'a dyn TokenCounter,
    read: &'a Read<'a>,
    pieces: Vec<OwnedPiece>,
    counts: RepairCounts,
    /// The newest position that was kept so far.
    newest: u32,
    /// The calls of the message that the latest result was made for, with its position.
    calls: Option<(u32, Vec<NamedCall>)>,
    /// The last piece, while messages are merged into it.
    merging: Option<Merging>,
}

/// A call, as its result names it.
struct NamedCall {
    id: Str,
    name: Str,
}

/// A message that others are merged into.
struct Merging {
    into: OwnedPiece,
    message: Message,
    parts: Vec<Part>,
}

impl<'a, 't> Rebuilt<'a, 't> {
    pub(super) fn new(
        kept: &'a [OwnedPiece],
        transcript: &'a mut Transcript<'t>,
        (profile, counter): (Profile, &'a dyn TokenCounter),
        read: &'a Read<'a>,
    ) -> Self {
        let counts = RepairCounts { left_out: kept.len() as u64, ..RepairCounts::default() };
        let pieces = Vec::with_capacity(kept.len());
        let (calls, merging) = (None, None);
        Self { kept, transcript, profile, counter, read, pieces, counts, newest: 0, calls, merging }
    }

    /// Does one step.
    pub(super) fn apply(&mut self, step: Repair) -> Result<()> {
        if let Repair::Keep(at) | Repair::Merge { position: at } | Repair::DropReasoning { position: at } =
            step
        {
            self.counts.left_out -= 1;
            self.counts.moved += u64::from(at < self.newest);
            self.newest = self.newest.max(at);
        }
        if let Repair::Merge { position } = step {
            return self.merge(position);
        }
        self.close()?;
        match step {
            Repair::Keep(at) => {
                let piece = self.piece(at)?.clone();
                self.pieces.push(piece);
            }
            Repair::DropReasoning { position } => {
                let message = self.message(position)?;
                let rest = message.parts().iter().filter(|part| !matches!(part, Part::Reasoning(_)));
                let rest = rest.cloned().collect();
                self.push_edited(self.piece(position)?, &message.with_parts(rest))?;
                self.counts.without_reasoning += 1;
            }
            Repair::Abort { position, call } | Repair::Unrecorded { position, call } => {
                let result = self.invented(position, call, step.invented().unwrap_or_default())?;
                self.pieces.push(new(&result)?);
                self.counts.count_result(step);
            }
            Repair::BridgeUser => {
                self.pieces.push(new(&Message::user(BRIDGE_USER))?);
                self.counts.put_between += 1;
            }
            Repair::BridgeAssistant => {
                self.pieces.push(new(&Message::assistant(BRIDGE))?);
                self.counts.put_between += 1;
            }
            other => return Err(Failure::input(format!("the repair {other:?} is not known here"))),
        }
        Ok(())
    }

    /// The repaired messages, and what was done.
    pub(super) fn finish(mut self) -> Result<(Vec<OwnedPiece>, RepairCounts)> {
        self.close()?;
        Ok((self.pieces, self.counts))
    }

    fn piece(&self, at: u32) -> Result<&'a OwnedPiece> {
        let none = || Failure::input(format!("there is no message {at} to repair"));
        self.kept.get(at as usize).ok_or_else(none)
    }

    fn message(&mut self, at: u32) -> Result<Message> {
        (self.read)(self.piece(at)?, self.transcript)
    }

    /// Adds what the message at `position` says to the last piece.
    fn merge(&mut self, position: u32) -> Result<()> {
        let more = self.message(position)?;
        if self.merging.is_none()
            && let Some(into) = self.pieces.pop()
        {
            let message = (self.read)(&into, self.transcript)?;
            let parts = message.parts().to_vec();
            self.merging = Some(Merging { into, message, parts });
        }
        if let Some(merging) = &mut self.merging {
            merging.parts.extend_from_slice(more.parts());
            // It is of the format of what was read: what is sealed in it is sealed for that vendor.
            if merging.into.original().is_none() {
                merging.message = more;
            }
            self.counts.merged += 1;
        }
        Ok(())
    }

    /// Writes the message that others were merged into: once for all of them.
    fn close(&mut self) -> Result<()> {
        match self.merging.take() {
            Some(Merging { into, message, parts }) => self.push_edited(&into, &message.with_parts(parts)),
            None => Ok(()),
        }
    }

    /// Adds a piece with another message in its place.
    fn push_edited(&mut self, piece: &OwnedPiece, message: &Message) -> Result<()> {
        let edited = match piece.original() {
            Some(at) => {
                let tokens = count_message(message, self.counter).as_u64();
                let text = if self.transcript.replace(at, message) { None } else { Some(chat(message)?) };
                OwnedPiece::Shortened { at, text, tokens }
            }
            None => {
                chat(message).map_or_else(|_| OwnedPiece::Unsaid(Box::new(message.clone())), OwnedPiece::New)
            }
        };
        self.pieces.push(edited);
        Ok(())
    }

    /// A result of this text for a call of a message; with the name of its tool where the provider asks for it.
    fn invented(&mut self, position: u32, wanted: u32, text: &str) -> Result<Message> {
        if self.calls.as_ref().is_none_or(|(at, _)| *at != position) {
            self.calls = Some((position, calls(&self.message(position)?)));
        }
        let calls = self.calls.as_ref().map_or(&[][..], |(_, calls)| calls);
        let call = calls.get(wanted as usize);
        let result = Message::tool(call.map(|call| call.id.clone()).unwrap_or_default(), text);
        Ok(match call.filter(|_| self.profile == Profile::Gemini) {
            Some(call) => result.with_name(call.name.clone()),
            None => result,
        })
    }
}

/// The calls of a message that the caller answers.
fn calls(message: &Message) -> Vec<NamedCall> {
    let calls = message.parts().iter().filter_map(|part| match part {
        Part::ToolCall(call) if call.kind == CallKind::Function => {
            Some(NamedCall { id: call.id.clone(), name: call.name.clone() })
        }
        _ => None,
    });
    calls.collect()
}

fn new(message: &Message) -> Result<OwnedPiece> {
    chat(message).map(OwnedPiece::New)
}

fn chat(message: &Message) -> Result<String> {
    let text = openai_chat::write(message).map_err(|error| Failure::input(error.to_string()))?;
    Ok(text.into_owned())
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;
    use core::fmt::Write as _;
    use std::path::Path;

    use epitome::core::ClassEstimator;
    use epitome::std::wire::document;

    use super::super::super::piece::{all, message_of};
    use super::super::repair_steps;
    use super::*;

    /// How often a message is read while these messages are repaired, and what was done.
    fn reads_of(messages: &str, profile: Profile) -> (u64, RepairCounts) {
        let text = format!("[{messages}]");
        let conversation = document::conversation(&text).unwrap();
        let mut transcript = Transcript::Memory { path: Path::new("t.json"), conversation };
        let (kept, reads) = (all(&transcript), Cell::new(0));
        let read = |piece: &OwnedPiece, transcript: &mut Transcript<'_>| {
            reads.set(reads.get() + 1);
            message_of(piece, transcript)
        };
        let steps = repair_steps(&kept, &mut transcript, profile).unwrap();
        let counter = ClassEstimator::new();
        let mut rebuilt = Rebuilt::new(&kept, &mut transcript, (profile, &counter), &read);
        for step in steps {
            rebuilt.apply(step).unwrap();
        }
        let (_, counts) = rebuilt.finish().unwrap();
        (reads.get(), counts)
    }

    #[test]
    fn a_message_is_read_once_however_many_of_its_calls_have_no_result() {
        for count in [1, 2, 50] {
            let calls = (0..count).fold(String::new(), |mut text, at| {
                let comma = if at == 0 { "" } else { "," };
                let function = r#""type":"function","function":{"name":"f","arguments":"{}"}"#;
                write!(text, r#"{comma}{{"id":"c{at}",{function}}}"#).unwrap();
                text
            });
            let go = r#"{"role":"user","content":"go"}"#;
            let text = format!(r#"{go},{{"role":"assistant","content":null,"tool_calls":[{calls}]}},{go}"#);
            for profile in [Profile::OpenaiChat, Profile::Gemini] {
                let (reads, counts) = reads_of(&text, profile);
                assert_eq!((reads, counts.aborted + counts.unrecorded), (1, count));
            }
        }
    }

    #[test]
    fn a_message_that_others_are_merged_into_is_read_once() {
        for count in [1, 2, 50] {
            let text = vec![r#"{"role":"user","content":"go"}"#; count + 1].join(",");
            let (reads, counts) = reads_of(&text, Profile::BedrockConverse);
            assert_eq!((reads, counts.merged), (count as u64 + 1, count as u64));
        }
    }
}
