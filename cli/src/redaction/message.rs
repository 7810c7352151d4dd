//! Messages without secrets, for the output.

use epitome::message::{MediaSource, Message, Part, Str};

use crate::redact::Redactor;

impl Redactor {
    /// Takes the secrets out of a message.
    pub(crate) fn message(&mut self, message: Message) -> Message {
        let name = message.name().and_then(|name| self.value(None, name));
        let parts = message.parts().iter().map(|part| self.part(part.clone())).collect();
        let message = message.with_parts(parts);
        match name {
            Some(name) => message.with_name(name),
            None => message,
        }
    }

    fn part(&mut self, mut part: Part) -> Part {
        match &mut part {
            Part::Text(text) => self.str(text),
            Part::Reasoning(reasoning) => self.str(&mut reasoning.text),
            Part::ToolCall(call) => {
                self.str(&mut call.id);
                self.str(&mut call.name);
                self.str(&mut call.arguments);
            }
            Part::ToolResult(result) => {
                self.str(&mut result.call_id);
                result.parts =
                    core::mem::take(&mut result.parts).into_iter().map(|part| self.part(part)).collect();
            }
            Part::Media(media) => {
                if let MediaSource::Uri(uri) = &mut media.source {
                    self.str(uri);
                }
            }
            Part::Compaction(left) => self.str(&mut left.text),
            Part::Unknown(unknown) => self.str(&mut unknown.raw),
            // The other parts have only ids.
            _ => {}
        }
        part
    }

    fn str(&mut self, text: &mut Str) {
        if let Some(new) = self.value(None, text) {
            *text = Str::from(new);
        }
    }
}
