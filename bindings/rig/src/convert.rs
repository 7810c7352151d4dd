//! Converts messages of rig to messages of Epitome: with their parts, and with the original message as JSON text.

use epitome::core::message::{MediaKind, Role};
use epitome::message::{
    Media, MediaSource, Message, Part, Reasoning, ToolCall, ToolResult, UnknownPart, WireText,
};
use rig_core::completion::message::{DocumentSourceKind, MimeType, ToolResultContent, UserContent};
use rig_core::completion::{AssistantContent, Message as RigMessage};

/// Name of the format of the original texts.
pub(crate) const FORMAT: &str = "rig";

/// Converts messages of rig. One message of rig can become several: each tool result is a message, and so is the user's
/// own content between tool results.
pub(crate) fn messages(messages: &[RigMessage]) -> Result<Vec<Message>, serde_json::Error> {
    let mut all = Vec::new();
    for message in messages {
        match message {
            RigMessage::System { content } => {
                all.push(stored(Role::System, vec![Part::Text(content.as_str().into())], message, false)?);
            }
            RigMessage::Assistant(said) => {
                let parts = said.content.iter().map(assistant_part).collect::<Result<_, _>>()?;
                all.push(stored(Role::Assistant, parts, message, false)?);
            }
            RigMessage::User { content } => {
                let is_result = |one: &UserContent| matches!(one, UserContent::ToolResult(_));
                // Each tool result is a message; all other content between two results is one message.
                let runs = content.chunk_by(|one, next| !is_result(one) && !is_result(next));
                for (at, run) in runs.enumerate() {
                    let role = if run.iter().any(is_result) { Role::Tool } else { Role::User };
                    let parts = run.iter().map(user_part).collect::<Result<_, _>>()?;
                    all.push(stored(role, parts, &RigMessage::User { content: run.to_vec() }, at > 0)?);
                }
            }
        }
    }
    Ok(all)
}

fn stored(
    role: Role,
    parts: Vec<Part>,
    message: &RigMessage,
    rejoin: bool,
) -> Result<Message, serde_json::Error> {
    let text = serde_json::to_string(message)?;
    Ok(Message::new(role, parts).with_wire(WireText::new(FORMAT.into(), text.into()).with_rejoin(rejoin)))
}

/// Converts content of the user or of a tool to a part.
pub(crate) fn user_part(content: &UserContent) -> Result<Part, serde_json::Error> {
    Ok(match content {
        UserContent::Text(text) => Part::Text(text.text.as_str().into()),
        UserContent::ToolResult(result) => {
            let parts = result.content.iter().map(result_part).collect::<Result<_, _>>()?;
            let mut part = ToolResult::new(result.call.wire().into_owned(), parts);
            part.is_error = result.is_error;
            Part::ToolResult(part)
        }
        UserContent::Image(image) => {
            media(MediaKind::Image, image.media_type.as_ref().map(MimeType::to_mime_type), &image.data)
        }
        UserContent::Audio(audio) => {
            media(MediaKind::Audio, audio.media_type.as_ref().map(MimeType::to_mime_type), &audio.data)
        }
        UserContent::Video(video) => {
            media(MediaKind::Video, video.media_type.as_ref().map(MimeType::to_mime_type), &video.data)
        }
        UserContent::Document(document) => match &document.data {
            DocumentSourceKind::String(text) => Part::Text(text.as_str().into()),
            data => {
                media(MediaKind::Document, document.media_type.as_ref().map(MimeType::to_mime_type), data)
            }
        },
    })
}

/// Converts content of the model to a part.
pub(crate) fn assistant_part(content: &AssistantContent) -> Result<Part, serde_json::Error> {
    Ok(match content {
        AssistantContent::Text(text) => Part::Text(text.text.as_str().into()),
        AssistantContent::ToolCall(call) => {
            let function = &call.function;
            let arguments = match &function.invalid_arguments {
                Some(text) => text.clone(),
                None => serde_json::to_string(&function.arguments)?,
            };
            Part::ToolCall(ToolCall::new(call.id.wire().into_owned(), function.name.as_str(), arguments))
        }
        AssistantContent::Reasoning(reasoning) => Part::Reasoning(Reasoning::new(reasoning.text.as_str())),
        AssistantContent::Image(image) => {
            media(MediaKind::Image, image.media_type.as_ref().map(MimeType::to_mime_type), &image.data)
        }
        other => Part::Unknown(UnknownPart::new(FORMAT, "item", serde_json::to_string(other)?)),
    })
}

fn result_part(content: &ToolResultContent) -> Result<Part, serde_json::Error> {
    Ok(match content {
        ToolResultContent::Text(text) => Part::Text(text.text.as_str().into()),
        ToolResultContent::Json { value } => Part::Text(serde_json::to_string(value)?.into()),
        ToolResultContent::Image(image) => {
            media(MediaKind::Image, image.media_type.as_ref().map(MimeType::to_mime_type), &image.data)
        }
    })
}

fn media(kind: MediaKind, mime: Option<&str>, data: &DocumentSourceKind) -> Part {
    let source = match data {
        DocumentSourceKind::Base64(text) => MediaSource::Base64(text.as_str().into()),
        other => MediaSource::Uri(other.to_string().into()),
    };
    Part::Media(Media::new(kind, mime.unwrap_or_default(), source))
}
