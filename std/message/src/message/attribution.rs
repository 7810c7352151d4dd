//! Owned attribution.

use epitome_core::attribution::{AttributionView, Authority, Retention, SeqRange, SourceKind};

use super::Str;

/// The label that pins a message.
pub const LABEL_IMPORTANT: &str = "important";
/// The label that makes a message ephemeral: of use in this run only, and not stored.
pub const LABEL_EPHEMERAL: &str = "ephemeral";

/// The source of a message, the trust in it, and the time that it must stay.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attribution {
    /// Which component added the message: a provider's source id, or empty for the caller.
    pub source_id: Str,
    /// The kind of that component.
    pub source: SourceKind,
    /// The trust in its content.
    pub authority: Authority,
    /// The time that it must stay.
    pub retention: Retention,
    /// The messages that a derived message stands for, in ascending order; empty for an original.
    pub derived_from: Vec<SeqRange>,
    /// The caller's own label, for filters at run time.
    pub label: Option<Str>,
}

impl Attribution {
    /// A message that the component `source_id` added.
    #[must_use]
    pub fn new(source_id: impl Into<Str>, source: SourceKind, authority: Authority) -> Self {
        Self {
            source_id: source_id.into(),
            source,
            authority,
            retention: Retention::Normal,
            derived_from: Vec::new(),
            label: None,
        }
    }

    /// A message that the caller added.
    #[must_use]
    pub fn caller(authority: Authority) -> Self {
        Self::new("", SourceKind::Caller, authority)
    }

    /// Sets the retention.
    #[must_use]
    pub const fn with_retention(mut self, retention: Retention) -> Self {
        self.retention = retention;
        self
    }

    /// Sets the ranges of messages that the message stands for.
    #[must_use]
    pub fn with_derived_from(mut self, ranges: Vec<SeqRange>) -> Self {
        self.derived_from = ranges;
        self
    }

    /// Sets the caller's label: any text, for filters at run time. Two labels also say how long the message must stay: `important` pins it,
    /// `ephemeral` makes it ephemeral. A label is not stored; the retention that it sets is.
    ///
    /// Only this call gives a label its meaning. One that is read from a file is data.
    #[must_use]
    pub fn with_label(mut self, label: impl Into<Str>) -> Self {
        let label = label.into();
        match label.as_str() {
            LABEL_IMPORTANT => self.retention = Retention::Pinned,
            LABEL_EPHEMERAL => self.retention = Retention::Ephemeral,
            _ => {}
        }
        self.label = Some(label);
        self
    }

    /// The attribution as the planner sees it.
    #[must_use]
    pub fn view(&self) -> AttributionView<'_> {
        let mut view = AttributionView::caller(self.authority);
        view.source_id = &self.source_id;
        view.source = self.source;
        view.retention = self.retention;
        view.derived_from = &self.derived_from;
        view.label = self.label.as_deref();
        view
    }
}
