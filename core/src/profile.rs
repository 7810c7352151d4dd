//! The rules of the provider that receives a request.

/// Whose rules a request must obey.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Profile {
    /// Chat Completions of `OpenAI` and those who speak its format: each message with calls is directly followed by the
    /// results of all of them.
    #[default]
    OpenaiChat,
    /// Only what makes sense anywhere: each result has its call before it, and each call one result.
    Permissive,
}

impl Profile {
    /// All profiles.
    pub const ALL: [Self; 2] = [Self::OpenaiChat, Self::Permissive];

    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenaiChat => "openai-chat",
            Self::Permissive => "permissive",
        }
    }

    /// The profile of this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.as_str() == name)
    }

    /// Whether results must stand directly after the message that called.
    pub(crate) const fn results_follow_calls(self) -> bool {
        matches!(self, Self::OpenaiChat)
    }
}
