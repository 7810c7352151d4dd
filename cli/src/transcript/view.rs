//! A message of any format.

use epitome::core::attribution::AttributionView;
use epitome::core::message::{MessageView, PartView, Parts, Role};
use epitome::message::Message;
use epitome::wire::WireError;
use epitome::wire::openai_chat::{self, ChatView};

/// A message, borrowed from its text or owned.
#[derive(Debug)]
pub(crate) enum View<'a> {
    Chat(ChatView<'a>),
    Owned(&'a Message),
}

impl View<'_> {
    /// The source text of the message.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Chat(view) => view.text(),
            Self::Owned(message) => message.wire().map_or("", |wire| wire.text.as_str()),
        }
    }

    /// The message, owned.
    pub(crate) fn to_message(&self) -> Result<Message, WireError> {
        match self {
            Self::Chat(view) => openai_chat::read(view.text()),
            Self::Owned(message) => Ok((*message).clone()),
        }
    }
}

impl Parts for View<'_> {
    fn for_each_part(&self, visit: &mut dyn FnMut(PartView<'_>)) {
        match self {
            Self::Chat(view) => view.for_each_part(visit),
            Self::Owned(message) => message.for_each_part(visit),
        }
    }
}

impl MessageView for View<'_> {
    fn role(&self) -> Role {
        match self {
            Self::Chat(view) => MessageView::role(view),
            Self::Owned(message) => message.role(),
        }
    }

    fn attribution(&self) -> AttributionView<'_> {
        match self {
            Self::Chat(view) => MessageView::attribution(view),
            Self::Owned(message) => MessageView::attribution(*message),
        }
    }

    fn response_id(&self) -> Option<&str> {
        match self {
            Self::Chat(view) => MessageView::response_id(view),
            Self::Owned(message) => message.response_id(),
        }
    }

    fn name(&self) -> Option<&str> {
        match self {
            Self::Chat(view) => MessageView::name(view),
            Self::Owned(message) => message.name(),
        }
    }
}
