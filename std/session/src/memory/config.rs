//! Settings of memories in environment variables.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{InMemoryStore, MemoryContextProvider, MemoryPersistence};
use crate::run::RunSettings;
use crate::session::SessionError;

/// The configuration of an agent's memory: on or off, its kind and its directory.
///
/// ```
/// use epitome_std::memory::{MemoryConfig, MemoryKind};
///
/// let config = MemoryConfig::from_vars(|name| (name == "MEMORY_DIR").then(|| "/var/agent/memory".to_owned()))?;
/// assert!(config.enabled);
/// assert_eq!(config.kind, MemoryKind::InMemory);
/// assert!(MemoryConfig::from_vars(|_| Some("mem0".to_owned())).is_err());
/// # Ok::<(), epitome_std::session::SessionError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryConfig {
    /// Whether the agent has a memory: `MEMORY_ENABLED`, on by default.
    pub enabled: bool,
    /// The kind of memory: `MEMORY_TYPE`.
    pub kind: MemoryKind,
    /// The directory of the memory: `MEMORY_DIR`. `None` if it is not set: then nothing is written, until the caller
    /// sets a directory.
    pub dir: Option<PathBuf>,
}

/// A kind of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum MemoryKind {
    /// `in_memory`: [`InMemoryStore`](super::InMemoryStore).
    #[default]
    InMemory,
}

impl Default for MemoryConfig {
    fn default() -> Self {
        Self { enabled: true, kind: MemoryKind::default(), dir: None }
    }
}

impl MemoryConfig {
    /// Sets the directory to `ROOT/memory` if none is set: next to the sessions of a
    /// [`FileSessionStore`](crate::session::FileSessionStore) with the same root.
    #[must_use]
    pub fn or_under(mut self, root: impl AsRef<Path>) -> Self {
        self.dir = self.dir.or_else(|| Some(root.as_ref().join("memory")));
        self
    }

    /// The configured provider; `None` if the memory is off.
    #[must_use]
    pub fn provider(&self) -> Option<MemoryContextProvider> {
        if !self.enabled {
            return None;
        }
        Some(match (self.kind, &self.dir) {
            (MemoryKind::InMemory, Some(dir)) => {
                MemoryContextProvider::in_files(MemoryPersistence::in_folder(dir.as_path()))
            }
            (MemoryKind::InMemory, None) => MemoryContextProvider::new(Arc::new(InMemoryStore::default())),
        })
    }

    /// Reads the configuration from the environment of this process: `MEMORY_ENABLED`, `MEMORY_TYPE` and `MEMORY_DIR`.
    ///
    /// # Errors
    /// As [`MemoryConfig::from_vars`].
    pub fn from_env() -> Result<Self, SessionError> {
        #[expect(clippy::disallowed_methods, reason = "the one place that reads it, and only when called")]
        Self::from_vars(|name| std::env::var(name).ok())
    }

    /// Reads the configuration from these variables. An empty variable counts as missing. `~/` at the beginning of
    /// `MEMORY_DIR` stands for `HOME`.
    ///
    /// # Errors
    /// `Invalid` for an unknown `MEMORY_TYPE`, or for a `MEMORY_ENABLED` that is neither yes nor no.
    pub fn from_vars(var: impl Fn(&str) -> Option<String>) -> Result<Self, SessionError> {
        let var = |name: &str| var(name).filter(|value| !value.is_empty());
        let mut config = Self::default();
        if let Some(enabled) = var("MEMORY_ENABLED") {
            config.enabled = match enabled.to_ascii_lowercase().as_str() {
                "true" | "1" | "yes" | "on" => true,
                "false" | "0" | "no" | "off" => false,
                _ => return Err(SessionError::invalid("MEMORY_ENABLED is neither `true` nor `false`")),
            };
        }
        config.kind = match var("MEMORY_TYPE").as_deref() {
            None | Some("in_memory") => MemoryKind::InMemory,
            Some(other) => {
                return Err(SessionError::invalid(format!("MEMORY_TYPE is {other:?}; known are: in_memory")));
            }
        };
        config.dir = var("MEMORY_DIR").map(|dir| match (dir.strip_prefix("~/"), var("HOME")) {
            (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
            _ => PathBuf::from(dir),
        });
        Ok(config)
    }
}

impl RunSettings {
    /// Adds the memory of `config`. Before a run it finds earlier messages. After the run it stores the new ones, in a
    /// file of the session if `config` has a directory. Each run reads the file again. A `config` without a memory
    /// changes nothing.
    ///
    /// Call it after the history providers are added: messages that they load are not found again. A memory is no
    /// history. An agent that has only a memory finds earlier messages, but sends none of them as a message of its own.
    ///
    /// ```
    /// use epitome_std::memory::MemoryConfig;
    /// use epitome_std::provider::HistoryProvider;
    /// use epitome_std::run::RunSettings;
    ///
    /// # let root = std::env::temp_dir();
    /// let settings = RunSettings::new("helper")
    ///     .with_provider(HistoryProvider::in_memory())?
    ///     .with_memory(&MemoryConfig::from_env()?.or_under(root))?;
    /// # Ok::<(), epitome_std::session::SessionError>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` if the settings have a provider with the source id of the memory.
    pub fn with_memory(self, config: &MemoryConfig) -> Result<Self, SessionError> {
        match config.provider() {
            Some(provider) => self.with_provider(provider),
            None => Ok(self),
        }
    }
}
