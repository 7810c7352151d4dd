//! Owned attribution.

use epitome_core::attribution::{AttributionView, Authority, Retention, SeqRange, SourceKind};

use super::Str;

/// The label that pins a message.
pub const LABEL_IMPORTANT: &str = "important";
/// The label that makes a message ephemeral: it is for this run only, and not stored.
pub const LABEL_EPHEMERAL: &str = "ephemeral";

/// The source of a message, the trust in it, and the time that it must stay.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attribution {
    /// The component that added the message: a provider's source id, or empty for the caller.
    pub source_id: Str,
    /// The kind of that component.
    pub source: SourceKind,
    /// The authority of its content.
    pub authority: Authority,
    /// The time that it must stay.
    pub retention: Retention,
    /// The messages that a derived message covers, in ascending order; empty for an original message.
    pub derived_from: Vec<SeqRange>,
    /// The caller's own label, for filters at run time.
    pub label: Option<Str>,
}

impl Attribution {
    /// The attribution of a message from the component `source_id`.
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

    /// The attribution of a message from the caller.
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

    /// Sets the ranges of messages that the message covers.
    #[must_use]
    pub fn with_derived_from(mut self, ranges: Vec<SeqRange>) -> Self {
        self.derived_from = ranges;
        self
    }

    /// Sets the caller's label: any text, for filters at run time. Two labels also set the retention: `important`
    /// pins the message, `ephemeral` makes it ephemeral. The label is not stored; the retention is.
    ///
    /// Only this function gives a label its effect. A label in a file is plain data.
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
