//! Compactions that are begun before they are due.

use core::any::Any;
use core::fmt;

use epitome_core::{ModelKey, Revision};

/// The outcome of a request to begin early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Began {
    /// The work is under way from now on.
    Now,
    /// The work was begun earlier, and is still valid.
    Earlier,
    /// The work was begun earlier, is done, and is valid: compact, although no compaction is due.
    Come,
    /// No work is under way: there is no place for it, or no new work may begin (see
    /// [`CompactionCx::is_early`](super::CompactionCx::is_early)).
    Nothing,
}

/// The reason why early work is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Discarded {
    /// The messages were changed meanwhile: compacted in another way, answered late, or left out.
    PrefixEdited,
    /// The conversation continues with another model, or another counter counts it.
    ModelChanged,
    /// Another compactor compacts.
    Superseded,
    /// The work failed.
    Failed,
    /// There is nothing to gain by it.
    NothingToGain,
}

impl Discarded {
    /// The reason, in words.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PrefixEdited => "what it is about was changed meanwhile",
            Self::ModelChanged => "the conversation goes on with another model",
            Self::Superseded => "another compactor compacts",
            Self::Failed => "it failed",
            Self::NothingToGain => "there is nothing to gain by it",
        }
    }
}

impl fmt::Display for Discarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The work that a compactor has begun for a session before a compaction is due. Dropping or emptying this value gives
/// the work up.
///
/// ```
/// use epitome_core::Revision;
/// use epitome_std::compaction::Begun;
///
/// let mut begun = Begun::default();
/// begun.put("what only its compactor knows", None, Revision(3));
/// assert_eq!(begun.work::<&str>(), Some(&"what only its compactor knows"));
/// assert!(begun.is_current(None, Revision(3)) && !begun.is_current(None, Revision(4)));
/// begun.give_up();
/// assert!(!begun.is_under_way());
/// ```
#[derive(Default)]
pub struct Begun(Option<Work>);

struct Work {
    work: Box<dyn Any + Send + Sync>,
    model: Option<ModelKey>,
    revision: Revision,
}

impl Begun {
    /// Stores `work` for this model and for a history at `revision`. Gives up the work that was stored before.
    pub fn put<T: Any + Send + Sync>(&mut self, work: T, model: Option<ModelKey>, revision: Revision) {
        self.0 = Some(Work { work: Box::new(work), model, revision });
    }

    /// Whether work is under way, or is done and not used yet.
    #[must_use]
    pub const fn is_under_way(&self) -> bool {
        self.0.is_some()
    }

    /// Whether there is work for this model that was last checked at `revision`.
    #[must_use]
    pub fn is_current(&self, model: Option<ModelKey>, revision: Revision) -> bool {
        self.0.as_ref().is_some_and(|it| it.model == model && it.revision == revision)
    }

    /// The model that the work is for.
    #[must_use]
    pub fn model(&self) -> Option<ModelKey> {
        self.0.as_ref()?.model
    }

    /// The work, if it is of this type.
    #[must_use]
    pub fn work<T: Any>(&self) -> Option<&T> {
        self.0.as_ref()?.work.downcast_ref()
    }

    /// Records that the work is valid for a history at `revision`.
    pub fn holds_at(&mut self, revision: Revision) {
        if let Some(work) = &mut self.0 {
            work.revision = revision;
        }
    }

    /// Gives the work up.
    pub fn give_up(&mut self) {
        self.0 = None;
    }
}

/// Shows no text: messages stay out of logs.
impl fmt::Debug for Begun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Begun").field("under_way", &self.is_under_way()).finish_non_exhaustive()
    }
}
