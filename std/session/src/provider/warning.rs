//! Warnings about lists of providers.

use core::fmt;

/// A warning about a list of providers. The list works, but is probably not as intended.
///
/// ```
/// use epitome_std::provider::{HistoryProvider, ProviderWarning, Providers};
///
/// let mut providers = Providers::default();
/// providers.push(HistoryProvider::in_memory().with_source_id("audit").load_messages(false))?;
/// let nothing_loads = ProviderWarning::NoLoader { source_ids: vec!["audit".into()] };
/// assert_eq!(providers.warnings(), [nothing_loads]);
/// # Ok::<(), epitome_std::session::SessionError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProviderWarning {
    /// Several history providers load: each message of a session is then sent once for each of them.
    SeveralLoaders {
        /// Their source ids.
        source_ids: Vec<String>,
    },
    /// There are history providers, and none of them loads.
    NoLoader {
        /// Their source ids.
        source_ids: Vec<String>,
    },
}

impl fmt::Display for ProviderWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SeveralLoaders { source_ids } => write!(
                f,
                "Multiple history providers configured to load messages: [{}]. This may cause duplicate messages in \
                 context. Consider load_messages=false on all but one.",
                source_ids.join(", ")
            ),
            Self::NoLoader { source_ids } => write!(
                f,
                "History providers configured but none have load_messages=true: [{}]. No conversation history will be \
                 loaded.",
                source_ids.join(", ")
            ),
        }
    }
}
