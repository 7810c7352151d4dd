//! Sources of new ids.

use core::fmt;

/// Makes new and unique ids of sessions and of runs.
///
/// A test injects a source that counts, so that its results are the same every time.
///
/// *For implementers*: two calls never return the same id, also not in two processes that share a store. A run with an
/// id that was used before would count as a repetition, and its messages as stored.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use epitome_std::session::{AgentSession, IdSource};
///
/// /// For a test, in which nothing else makes ids.
/// #[derive(Debug, Default)]
/// struct Counting(AtomicU64);
///
/// impl IdSource for Counting {
///     fn new_id(&self) -> String {
///         format!("id-{}", self.0.fetch_add(1, Ordering::Relaxed))
///     }
/// }
///
/// assert_eq!(AgentSession::with_id_source(&Counting::default()).session_id().as_str(), "id-0");
/// ```
pub trait IdSource: Send + Sync + fmt::Debug {
    /// A new id.
    fn new_id(&self) -> String;
}

/// Random UUIDs (version 4), as text.
///
/// ```
/// use epitome_std::session::{IdSource, UuidSource};
///
/// let (one, other) = (UuidSource.new_id(), UuidSource.new_id());
/// assert_eq!(one.len(), 36);
/// assert_ne!(one, other);
/// ```
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "a name for a way of making ids, without a state")]
pub struct UuidSource;

impl IdSource for UuidSource {
    fn new_id(&self) -> String {
        uuid::Uuid::new_v4().to_string()
    }
}
