//! Operations to send to the server.

use epitome_history::bodies::RowTexts;
use epitome_history::files::hex;
use epitome_history::kernel::{Op, OwnedOp, Reply, run};
use epitome_history::{SessionId, StoreError};

use super::Shared;
use super::keys::SessionKeys;
use super::survey::Survey;

/// An operation with the data that is prepared before it is sent.
pub(super) struct Job {
    pub(super) session: SessionId,
    pub(super) keys: SessionKeys,
    op: OwnedOp,
    pub(super) texts: RowTexts,
    /// The digest of the messages, in hexadecimal.
    pub(super) digest: String,
}

impl Job {
    pub(super) fn new(store: &Shared, session: &SessionId, op: Op<'_>) -> Result<Self, StoreError> {
        let texts = RowTexts::of(&op)?;
        let digest = hex(&texts.digest);
        let keys = store.prefix.keys(session);
        Ok(Self { session: session.clone(), keys, op: OwnedOp::of(op), texts, digest })
    }

    pub(super) fn op(&self) -> Op<'_> {
        self.op.as_op()
    }

    pub(super) async fn run(&self, store: &Shared) -> Result<Reply, StoreError> {
        run(&self.op(), &mut Survey::new(store, self)).await
    }
}
