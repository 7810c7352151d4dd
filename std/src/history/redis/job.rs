//! An operation on its way to the server.

use super::Shared;
use super::keys::SessionKeys;
use super::row;
use super::survey::Survey;
use crate::history::bodies::Texts;
use crate::history::kernel::{Op, OwnedOp, Reply, run};
use crate::history::{SessionId, StoreError};

/// An operation with everything about it that can be made before it is sent.
pub(super) struct Job {
    pub(super) session: SessionId,
    pub(super) keys: SessionKeys,
    op: OwnedOp,
    /// Of the messages their values, which have their texts in them.
    pub(super) texts: Texts,
    /// The digest of the messages, in hexadecimal.
    pub(super) digest: String,
}

impl Job {
    pub(super) fn new(store: &Shared, session: &SessionId, op: Op<'_>) -> Result<Self, StoreError> {
        let mut texts = Texts::of(&op)?;
        if let Op::Append(append, _) = op {
            let rows = append.entries.iter().zip(&texts.messages);
            texts.messages = rows.map(|(entry, body)| row::message(entry, body)).collect::<Result<_, _>>()?;
        }
        let digest = texts.digest.iter().map(|byte| format!("{byte:02x}")).collect();
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
