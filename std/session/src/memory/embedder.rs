//! Vectors of texts, for vector searches.

use core::fmt;

use async_trait::async_trait;

use crate::session::SessionError;

/// Computes the vector of a text, by the model that computed the vectors of the searched index.
///
/// ```
/// use async_trait::async_trait;
/// use epitome_std::memory::Embedder;
/// use epitome_std::session::SessionError;
///
/// /// Where a model of yours would be asked.
/// #[derive(Debug)]
/// struct Letters;
///
/// #[async_trait]
/// impl Embedder for Letters {
///     async fn embed(&self, text: &str) -> Result<Vec<f32>, SessionError> {
///         Ok([b'a', b'e', b'i'].map(|vowel| text.bytes().filter(|byte| *byte == vowel).count() as f32).to_vec())
///     }
/// }
/// # assert_eq!(futures::executor::block_on(Letters.embed("a tea")).unwrap(), [2.0, 1.0, 0.0]);
/// ```
#[async_trait]
pub trait Embedder: Send + Sync + fmt::Debug {
    /// The vector of this text.
    ///
    /// # Errors
    /// The error of the embedding model. Before a run it ends the run, before the model of the agent is called.
    async fn embed(&self, text: &str) -> Result<Vec<f32>, SessionError>;
}
