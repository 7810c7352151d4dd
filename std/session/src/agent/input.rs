//! Input of a run.

use core::fmt;

use crate::message::Message;

/// The input of a run: a text, a message, or several messages.
///
/// Without input the model continues. Before that, an agent with a tool runner runs the calls of the current turn that
/// have no result, also if a process that crashed has run them already. A text as input begins a new turn instead: the
/// model reads that these calls were aborted.
///
/// ```
/// use epitome_std::agent::Input;
/// use epitome_std::message::Message;
///
/// assert_eq!(Input::from("Hi").into_messages(), [Message::user("Hi")]);
/// assert_eq!(Input::from(Vec::new()), Input::default());
/// ```
#[derive(Clone, Default, PartialEq)]
pub struct Input(Vec<Message>);

impl Input {
    /// The messages.
    #[must_use]
    pub fn into_messages(self) -> Vec<Message> {
        self.0
    }
}

impl From<&str> for Input {
    fn from(text: &str) -> Self {
        Self(vec![Message::user(text)])
    }
}

impl From<String> for Input {
    fn from(text: String) -> Self {
        Self(vec![Message::user(text)])
    }
}

impl From<Message> for Input {
    fn from(message: Message) -> Self {
        Self(vec![message])
    }
}

impl From<Vec<Message>> for Input {
    fn from(messages: Vec<Message>) -> Self {
        Self(messages)
    }
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input").field("messages", &self.0.len()).finish()
    }
}
