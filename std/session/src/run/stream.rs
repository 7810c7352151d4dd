//! Recording an answer that arrives piece by piece.

use super::live::Run;
use super::partial::{Arrived, Left};
use super::{Delta, ModelResponse, RequestHandle, RunError};

const NO_ANSWER: RunError = RunError::Misuse("no answer has begun: call begin_response");

impl Run<'_> {
    /// Begins to record an answer that arrives piece by piece.
    ///
    /// # Errors
    /// [`RunError::Misuse`] as [`Run::record`].
    pub fn begin_response(&mut self, handle: RequestHandle) -> Result<(), RunError> {
        self.check_idle()?;
        self.check_handle(&handle)?;
        self.partial = Some(handle);
        // If this run is dropped from now on, the session has the data to store it.
        self.session.left = Some(Box::new(Left::new(&self.context, &self.providers)));
        Ok(())
    }

    /// Records a piece of the answer.
    ///
    /// # Errors
    /// [`RunError::Misuse`] if no answer has begun.
    pub fn extend_response(&mut self, delta: &Delta) -> Result<(), RunError> {
        match self.session.left.as_mut().filter(|_| self.partial.is_some()) {
            Some(left) => left.arrived.extend(delta),
            None => return Err(NO_ANSWER),
        }
        Ok(())
    }

    /// Ends the answer: it is complete. Of several usage reports the last one counts; a report without input completes
    /// the one before it.
    ///
    /// # Errors
    /// [`RunError::Misuse`] if no answer has begun; otherwise as [`Run::record`].
    ///
    /// # Cancel safety
    /// As [`Run::record`].
    pub async fn finish_response(&mut self) -> Result<(), RunError> {
        let (handle, arrived) = self.take_partial().ok_or(NO_ANSWER)?;
        self.record(handle, arrived.finish()).await
    }

    /// Records a whole answer in place of the pieces that have arrived.
    pub(crate) async fn replace_response(&mut self, response: ModelResponse) -> Result<(), RunError> {
        let (handle, _) = self.take_partial().ok_or(NO_ANSWER)?;
        self.record(handle, response).await
    }

    /// Takes back the handle of a request whose answer has begun without content.
    pub(crate) fn unanswered(&mut self) -> Option<RequestHandle> {
        self.take_partial().map(|(handle, _)| handle)
    }

    /// Takes the answer that is arriving, if there is one. The session no longer holds it.
    pub(super) fn take_partial(&mut self) -> Option<(RequestHandle, Arrived)> {
        let handle = self.partial.take()?;
        Some((handle, self.session.left.take()?.arrived))
    }
}
