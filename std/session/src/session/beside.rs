//! Additional data of a session, for which the format of Agent Framework has no field.

use epitome_core::{ModelKey, SavedUsageLedger, Tally};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::kept::VERSION;
use super::{AgentSession, KeptRun, SessionContext, SessionError};
use crate::history::Timestamp;
use crate::run::Left;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Beside {
    v: u64,
    tally: Tally,
    /// Corrections and sizes from the reports on requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ledger: Option<SavedUsageLedger>,
    /// The time of the last request, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    requested: Option<u64>,
    /// The window that the provider of a model has reported, if it is smaller than was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    window: Option<(ModelKey, u64)>,
    /// A run that was left in the middle of an answer, and is still to be stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    left: Option<KeptRun>,
}

/// The additions to a session's fields; `None` if there are none.
pub(super) fn write(session: &AgentSession) -> Result<Option<Value>, SessionError> {
    let left = session.left.as_ref().map(|left| left.to_kept()).transpose();
    let left =
        left.map_err(|error| SessionError::invalid("what has arrived of an answer").with_source(error))?;
    let (ledger, requested) = (session.saved_ledger(), session.requested.map(|time| time.0));
    let beside =
        Beside { v: VERSION, tally: session.tally, ledger, requested, window: session.window_told, left };
    let Beside { tally, ledger, requested, window, left, .. } = &beside;
    let is_known = ledger.is_some() || requested.is_some() || window.is_some() || left.is_some();
    if *tally == Tally::default() && !is_known {
        return Ok(None);
    }
    let written = serde_json::to_value(&beside);
    Ok(Some(written.map_err(|error| SessionError::invalid("the usage").with_source(error))?))
}

/// Reads the additional data into the session. Returns whether the data was understood. The caller keeps data of a
/// newer release or of another program as it is.
pub(super) fn read(session: &mut AgentSession, value: &Value) -> bool {
    let Ok(beside) = Beside::deserialize(value) else { return false };
    // Data that would be written in another form was not written by this release.
    if beside.v != VERSION || serde_json::to_value(&beside).as_ref().ok() != Some(value) {
        return false;
    }
    let left = beside.left.as_ref().map(|kept| SessionContext::of_kept(session, kept)).transpose();
    let Ok(left) = left else { return false };
    session.tally = beside.tally;
    session.set_saved_ledger(beside.ledger);
    session.requested = beside.requested.map(Timestamp);
    session.window_told = beside.window;
    session.left = left.map(|context| Box::new(Left::of_session(context)));
    true
}
